"""Decoding gives the logits of the full forward pass however the text is cut; sampling keeps to its rules."""

import itertools

import numpy as np
import pytest

from labs.llm import generate as module
from labs.llm.generate import KVCache, extend, generate, sample, token_probabilities
from labs.llm.model import ModelConfig, forward, init_params, rope
from labs.llm.ops import softmax

#: Sizes pairwise different, and neither number at its default.
CONFIG = ModelConfig(vocab_size=11, d_model=24, n_heads=4, n_layers=2, d_ff=20, rope_base=50.0, norm_eps=0.05)
IDS = np.random.default_rng(0).integers(0, 11, (3, 7))


@pytest.fixture(scope="module")
def params():
    """Drawn parameters, with gains that are not one and logits that are not nearly equal."""
    rng = np.random.default_rng(1)
    drawn = init_params(CONFIG, rng)
    for key, array in drawn.items():
        if key.endswith("norm"):
            array *= rng.uniform(0.7, 1.3, array.shape)
    drawn["unembedding"] *= 10
    return drawn


def chunkings(T):
    """Yield every cut of T positions into pieces, as lists of slices."""
    for cuts in itertools.chain.from_iterable(itertools.combinations(range(1, T), n) for n in range(T)):
        yield [slice(*ends) for ends in itertools.pairwise([0, *cuts, T])]


def read(params, ids, chunks):
    logits, kv_cache = [], None
    for chunk in chunks:
        piece, kv_cache = extend(params, ids[:, chunk], CONFIG, kv_cache)
        logits.append(piece)
    return np.concatenate(logits, axis=1), kv_cache


def worst_chunking(params):
    """The largest difference over all cuts, in units of the largest logit."""
    expected, _ = forward(params, IDS, CONFIG)
    differences = [np.abs(read(params, IDS, chunks)[0] - expected).max() for chunks in chunkings(7)]
    return max(differences) / np.abs(expected).max()


# The kv_cache


def test_every_cut_of_the_text_gives_the_logits_of_the_full_forward_pass(params):
    assert sum(1 for _ in chunkings(7)) == 2**6
    assert worst_chunking(params) < 1e-12


def rope_from_zero(x, positions, *, base):
    return rope(x, positions - positions[0], base=base)


def mask_from_zero(t_query, t_key):
    return np.tri(t_query, t_key, dtype=bool)


@pytest.mark.parametrize(("name", "broken"), [("rope", rope_from_zero), ("causal_mask", mask_from_zero)])
def test_positions_or_masks_that_start_anew_are_noticed(params, monkeypatch, name, broken):
    monkeypatch.setattr(module, name, broken)
    assert worst_chunking(params) > 1e-3


def test_the_kv_cache_holds_the_keys_and_values_of_the_blocks(params):
    _, kv_cache = read(params, IDS, [slice(0, 4), slice(4, 5), slice(5, 7)])
    _, cache = forward(params, IDS, CONFIG)
    assert kv_cache.length == 7
    for block, k, v in zip(cache.blocks, *kv_cache, strict=True):
        np.testing.assert_allclose(k, block.k, rtol=1e-11, atol=1e-13)
        np.testing.assert_allclose(v, block.v, rtol=1e-11, atol=1e-13)


def test_one_kv_cache_serves_several_continuations(params):
    """Nothing is written into it, so that a second reader finds what the first one found."""
    _, kv_cache = extend(params, IDS[:, :4], CONFIG)
    for array in (*kv_cache.k, *kv_cache.v):
        array.setflags(write=False)
    first, _ = extend(params, IDS[:, 4:5], CONFIG, kv_cache)
    extend(params, IDS[:, 5:7], CONFIG, kv_cache)
    again, _ = extend(params, IDS[:, 4:5], CONFIG, kv_cache)
    assert np.array_equal(first, again)
    assert kv_cache.length == 4


def test_decoding_keeps_float32(params):
    single = {key: array.astype(np.float32) for key, array in params.items()}
    logits, kv_cache = read(single, IDS, [slice(0, 4), slice(4, 7)])
    assert {array.dtype for array in (logits, *kv_cache.k, *kv_cache.v)} == {np.dtype(np.float32)}


def test_a_kv_cache_that_does_not_fit_is_refused(params):
    _, kv_cache = extend(params, IDS, CONFIG)
    with pytest.raises(
        ValueError, match=r"kv_cache must have shape \(B, H, T, dh\) = \(2, 4, 7, 6\), got \(3,"
    ):
        extend(params, IDS[:2], CONFIG, kv_cache)
    with pytest.raises(ValueError, match="kv_cache must hold keys and values of L = 2 layers, got 1 and 2"):
        extend(params, IDS, CONFIG, KVCache(kv_cache.k[:1], kv_cache.v))
    uneven = KVCache(kv_cache.k, (kv_cache.v[0], kv_cache.v[1][:, :, :1]))
    with pytest.raises(ValueError, match=r"kv_cache must have shape .* got \(3, 4, 1, 6\)"):
        extend(params, IDS, CONFIG, uneven)
    single = {key: array.astype(np.float32) for key, array in params.items()}
    with pytest.raises(TypeError, match="kv_cache must have the dtype of params, float32, got float64"):
        extend(single, IDS, CONFIG, kv_cache)


@pytest.mark.parametrize(
    ("ids", "error"),
    [(IDS[0], ValueError), (IDS + 11, ValueError), (IDS[:, :0], ValueError), (IDS / 2, TypeError)],
)
def test_extend_refuses_ids(params, ids, error):
    with pytest.raises(error, match="ids must"):
        extend(params, ids, CONFIG)


def test_extend_refuses_parameters_of_another_model(params):
    with pytest.raises(ValueError, match="params must have the keys"):
        extend(params | {"bias": np.ones(3)}, IDS, CONFIG)


# Probabilities

#: Their softmax is 0.4, 0.3, 0.2, 0.1, in another order.
LOGITS = np.log([[0.1, 0.4, 0.2, 0.3]])


def test_without_options_it_is_the_softmax():
    np.testing.assert_allclose(token_probabilities(LOGITS), [[0.1, 0.4, 0.2, 0.3]], rtol=1e-14)


def test_temperature_by_hand():
    np.testing.assert_allclose(
        token_probabilities(LOGITS, temperature=0.5), np.array([[1, 16, 4, 9]]) / 30, rtol=1e-13
    )
    np.testing.assert_allclose(token_probabilities(LOGITS, temperature=1e9), np.full((1, 4), 0.25), rtol=1e-8)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_top_p_keeps_k_of_n_equal_tokens_for_k_over_n(dtype):
    """Whatever rounding makes of k / n and of the sum of k shares; 457 of these kept one more."""
    wrong = [
        (k, n)
        for n in range(1, 60)
        for k in range(1, n + 1)
        if np.count_nonzero(token_probabilities(np.zeros(n, dtype), top_p=k / n)) != k
    ]
    assert wrong == []


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_top_p_is_reached_up_to_rounding_by_unequal_tokens(dtype):
    p = token_probabilities(np.log([0.3, 0.1, 0.1, 0.5]).astype(dtype), top_p=0.8)
    np.testing.assert_allclose(p, [3 / 8, 0, 0, 5 / 8], rtol=1e-6)
    p = token_probabilities(np.log([0.3, 0.1, 0.1, 0.5]).astype(dtype), top_p=0.80001)
    assert np.count_nonzero(p) == 3


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("temperature", [0, 5e-324, 1e-12])
def test_a_temperature_at_or_near_zero_is_greedy(temperature, dtype):
    logits = np.array([[1000, -1000, 999, 0], [-3, -2, -1, -1.5]], dtype)
    p = token_probabilities(logits, temperature=temperature)
    assert np.array_equal(p, [[1, 0, 0, 0], [0, 0, 1, 0]])


def test_at_temperature_zero_the_smaller_id_wins_a_tie():
    assert np.array_equal(token_probabilities(np.array([1.0, 2.0, 2.0]), temperature=0), [0, 1, 0])


@pytest.mark.parametrize(
    ("top_k", "expected"),
    [(1, [0, 1, 0, 0]), (2, [0, 4 / 7, 0, 3 / 7]), (3, [0, 4 / 9, 2 / 9, 3 / 9]), (4, [0.1, 0.4, 0.2, 0.3])],
)
def test_top_k_by_hand(top_k, expected):
    np.testing.assert_allclose(token_probabilities(LOGITS, top_k=top_k), [expected], rtol=1e-13)


def test_a_top_k_beyond_the_vocabulary_keeps_all():
    assert np.array_equal(token_probabilities(LOGITS, top_k=5), token_probabilities(LOGITS))


def test_top_k_keeps_exactly_k_of_equals_the_smaller_ids_first():
    logits = np.random.default_rng(6).integers(0, 3, 200).astype(float)
    ranking = sorted(range(200), key=lambda i: (-logits[i], i))
    for top_k in (1, 30, 90, 150):
        assert set(np.flatnonzero(token_probabilities(logits, top_k=top_k))) == set(ranking[:top_k])


@pytest.mark.parametrize(
    ("top_p", "expected"),
    [
        (1e-9, [0, 1, 0, 0]),
        (0.39, [0, 1, 0, 0]),
        (0.41, [0, 4 / 7, 0, 3 / 7]),
        (0.69, [0, 4 / 7, 0, 3 / 7]),
        (0.71, [0, 4 / 9, 2 / 9, 3 / 9]),
        (0.91, [0.1, 0.4, 0.2, 0.3]),
    ],
)
def test_top_p_by_hand(top_p, expected):
    np.testing.assert_allclose(token_probabilities(LOGITS, top_p=top_p), [expected], rtol=1e-13)


def test_top_p_stops_where_it_is_reached_exactly():
    assert np.array_equal(token_probabilities(np.log([0.5, 0.25, 0.25]), top_p=0.5), [1, 0, 0])


def test_top_p_of_one_keeps_even_what_a_rounded_sum_would_drop():
    logits = np.array([0.0, -20.0, -50.0])
    assert 1 + np.exp(-50.0) == 1
    p = token_probabilities(logits, top_p=1)
    assert np.array_equal(p, token_probabilities(logits))
    assert p.all()


def test_top_p_counts_within_what_top_k_left():
    # of 0.4 and 0.3, scaled to 4/7 and 3/7, the first alone reaches 0.5; of all four it would not
    assert np.array_equal(token_probabilities(LOGITS, top_k=2, top_p=0.5), [[0, 1, 0, 0]])


def test_each_row_stands_alone():
    logits = np.random.default_rng(2).standard_normal((2, 3, 7)).astype(np.float32)
    before = logits.copy()
    options = {"temperature": 0.8, "top_k": 5, "top_p": 0.8}
    p = token_probabilities(logits, **options)
    assert np.array_equal(logits, before)
    assert p.dtype == np.float64
    for index in np.ndindex(2, 3):
        assert np.array_equal(p[index], token_probabilities(logits[index], **options))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"temperature": -1}, ValueError, "temperature must be positive"),
        ({"temperature": np.nan}, ValueError, "temperature must be positive"),
        ({"temperature": None}, TypeError, "temperature must be a real number"),
        ({"top_k": 0}, ValueError, "top_k must be at least 1"),
        ({"top_k": 2.0}, TypeError, "top_k must be an int"),
        ({"top_p": 0}, ValueError, "top_p must be positive"),
        ({"top_p": 1.1}, ValueError, "top_p must be at most 1"),
    ],
)
def test_probabilities_refuse(options, error, message):
    with pytest.raises(error, match=message):
        token_probabilities(LOGITS, **options)


def test_logits_without_a_largest_are_refused():
    for temperature in (0, 1):
        with pytest.raises(ValueError, match="softmax needs a finite largest score"):
            token_probabilities(np.array([0.0, np.nan]), temperature=temperature)


# Drawing


class Fixed(np.random.Generator):
    """A generator that always draws the same number."""

    def __init__(self, u):
        super().__init__(np.random.PCG64(0))
        self.u = u

    def random(self, size):
        return np.full(size, self.u)


@pytest.mark.parametrize(
    ("u", "expected"), [(0.0, 1), (0.24, 1), (0.25, 3), (0.74, 3), (0.75, 4), (np.nextafter(1, 0), 4)]
)
def test_drawing_by_hand(u, expected):
    p = np.array([[0, 0.25, 0, 0.5, 0.25, 0], [0, 0.25, 0, 0.5, 0.25, 0]])
    assert sample(p, Fixed(u)).tolist() == [expected, expected]


def test_a_sum_that_rounds_below_one_still_draws_the_last_token():
    p = np.full((1, 10), 0.1)
    assert p.cumsum()[-1] < 1
    assert sample(p, Fixed(np.nextafter(1, 0))).tolist() == [9]


@pytest.mark.parametrize(
    ("p", "error", "words"),
    [
        (np.full((2, 3), np.nan), ValueError, "p must hold probabilities, got numbers from nan to nan"),
        (np.zeros((2, 3)), ValueError, "p must add up to one in each row, got sums from 0 to 0"),
        (
            np.array([[1.5, -0.5, 0]]),
            ValueError,
            r"p must hold probabilities, got numbers from -0\.5 to 1\.5",
        ),
        (
            np.array([0.0, np.inf, -np.inf]),
            ValueError,
            "p must hold probabilities, got numbers from -inf to inf",
        ),
        (np.array([2.0, 1.0, 3.0]), ValueError, "from 1 to 3: token_probabilities makes them from logits"),
        (np.array([[0.5, 0.5], [0.5, 0.4]]), ValueError, r"got sums from 0\.9 to 1"),
        (np.zeros((2, 0)), ValueError, r"p must have shape \(\.\.\., V\), got \(2, 0\)"),
        (np.array(1.0), ValueError, r"p must have shape \(\.\.\., V\), got \(\)"),
        (np.array([1, 0]), TypeError, "p must hold floating-point numbers"),
        ([0.5, 0.5], TypeError, "p must be a NumPy array, got list"),
    ],
)
def test_what_is_no_probability_is_not_drawn_from(p, error, words):
    with pytest.raises(error, match=words):
        sample(p, np.random.default_rng(0))


def test_drawing_needs_a_generator_at_once(params):
    for rng in (None, 0, np.random.RandomState(0)):
        with pytest.raises(TypeError, match=r"rng must be a np\.random\.Generator, got"):
            sample(np.ones((2, 1)), rng)
        with pytest.raises(TypeError, match=r"rng must be a np\.random\.Generator, got"):
            generate(params, IDS, CONFIG, 2, rng, context=9)


def test_nothing_is_computed_before_the_options_are_judged(params, monkeypatch):
    monkeypatch.setattr(module, "extend", None)
    for option, error in (
        ({"top_k": 0}, ValueError),
        ({"temperature": "1"}, TypeError),
        ({"top_p": 2}, ValueError),
    ):
        with pytest.raises(error, match=f"{next(iter(option))} must be"):
            generate(params, IDS, CONFIG, 2, np.random.default_rng(0), context=9, **option)


def test_options_may_be_numbers_of_numpy(params):
    options = {"temperature": 0.5, "top_k": 5, "top_p": 0.75}
    kinds = {"temperature": np.float32, "top_k": np.int64, "top_p": np.float32}
    texts = [
        generate(params, IDS, CONFIG, count(8), np.random.default_rng(0), context=count(5), **given)
        for count, given in (
            (int, options),
            (np.int64, {name: kinds[name](value) for name, value in options.items()}),
        )
    ]
    assert np.array_equal(*texts)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({}, "kv_cache must be of type KVCache, got dict"),
        (((), ()), "kv_cache must be of type KVCache, got tuple"),
        (KVCache(None, ()), r"kv_cache\.k and \.v must be of type tuple, got NoneType"),
        (KVCache((None,) * 2, (None,) * 2), "kv_cache must be a NumPy array, got NoneType"),
    ],
)
def test_extend_refuses_what_is_no_cache(params, wrong, words):
    with pytest.raises(TypeError, match=words):
        extend(params, IDS, CONFIG, wrong)


def test_frequencies_approach_the_probabilities():
    p = np.array([0.1, 0.4, 0.0, 0.2, 0.3])
    n = 40_000
    counts = np.bincount(sample(np.tile(p, (n, 1)), np.random.default_rng(3)), minlength=5)
    assert np.all(np.abs(counts - n * p) <= 4 * np.sqrt(n * p * (1 - p)))


# Writing


def by_rereading(params, prompt, count, context):
    """The most probable continuation without any kv_cache: the whole window is read for every token."""
    text, first = prompt, max(0, prompt.shape[1] - context)
    for _ in range(count):
        if text.shape[1] - first > context:
            first = text.shape[1] - max(1, context // 2)
        logits, _ = forward(params, text[:, first:], CONFIG)
        text = np.concatenate([text, logits[:, -1:].argmax(axis=-1)], axis=1)
    return text[:, prompt.shape[1] :]


@pytest.mark.parametrize("context", [1, 2, 5, 7, 8, 100])
def test_greedy_writing_is_rereading_at_any_context(params, context):
    found = generate(params, IDS, CONFIG, 12, np.random.default_rng(0), context=context, temperature=0)
    assert np.array_equal(found, by_rereading(params, IDS, 12, context))


def test_the_context_is_never_exceeded_and_never_falls_below_half(params, monkeypatch):
    lengths = []

    def watched(*args):
        logits, kv_cache = extend(*args)
        lengths.append(kv_cache.length)
        return logits, kv_cache

    monkeypatch.setattr(module, "extend", watched)
    generate(params, IDS, CONFIG, 9, np.random.default_rng(0), context=6)
    assert lengths == [6, 3, 4, 5, 6, 3, 4, 5, 6]


def test_the_generator_decides_what_is_written(params):
    first, again, other = (
        generate(params, IDS, CONFIG, 20, np.random.default_rng(seed), context=9) for seed in (0, 0, 1)
    )
    assert first.shape == (3, 20)
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_options_reach_the_drawing(params):
    greedy = generate(params, IDS, CONFIG, 6, np.random.default_rng(0), context=20, temperature=0)
    for option in ({"top_k": 1}, {"top_p": 1e-9}, {"temperature": 1e-9}):
        assert np.array_equal(
            generate(params, IDS, CONFIG, 6, np.random.default_rng(0), context=20, **option), greedy
        )
    free = generate(params, IDS, CONFIG, 6, np.random.default_rng(0), context=20)
    assert not np.array_equal(free, greedy)


def test_first_tokens_are_drawn_from_the_softmax_of_the_model(params):
    n = 4000
    drawn = generate(params, np.tile(IDS[:1], (n, 1)), CONFIG, 1, np.random.default_rng(5), context=7)
    p = softmax(forward(params, IDS[:1], CONFIG)[0][0, -1])
    counts = np.bincount(drawn[:, 0], minlength=11)
    assert np.all(np.abs(counts - n * p) <= 4 * np.sqrt(n * p * (1 - p)) + 1)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"count": 0}, ValueError, "count must be at least 1"),
        ({"context": 0}, ValueError, "context must be at least 1"),
        ({"context": 2.5}, TypeError, "context must be an int"),
        ({"prompt": IDS[0]}, ValueError, r"prompt must have non-empty axes \(B, T\)"),
        ({"prompt": IDS[:, :0]}, ValueError, r"prompt must have non-empty axes \(B, T\)"),
        ({"prompt": IDS - 5}, ValueError, r"prompt must lie in \[0, V\)"),
        ({"prompt": IDS.astype(float)}, TypeError, "prompt must be integers"),
    ],
)
def test_generate_refuses(params, change, error, message):
    arguments = {"prompt": IDS, "count": 2, "context": 9, "rng": np.random.default_rng(0)} | change
    with pytest.raises(error, match=message):
        generate(params, config=CONFIG, **arguments)
