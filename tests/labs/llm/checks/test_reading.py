"""Checks of what is read accuse no right model, and find the mistakes that their docstrings promise."""

import math

import numpy as np
import pytest

from labs.llm import checks, ops
from labs.llm.checks import CANNOT_TELL, PASSED
from labs.llm.model import init_params, rope
from labs.llm.mutants.table import ORIGINAL

IDS = np.array([[2, 0, 1, 0, 3], [1, 1, 3, 0, 2], [0, 3, 2, 2, 1]])


def vectors(ids):
    """One row of a table for each id: (B, T) -> (B, T, 2)."""
    return np.array([[1.0, 0.5], [-0.7, 2.0], [0.3, -1.1], [4.0, 0.2]])[ids]


def running_sum(ids):
    """A model that reads everything up to its own position, in order, and nothing else."""
    x = vectors(ids)
    weights = np.arange(1.0, ids.shape[1] + 1)[:, np.newaxis]
    return np.cumsum(x * weights, axis=1)


# influence, causality, sensitivity


def test_influence_by_hand():
    def previous(ids):  # each position reads the one before it, the first reads itself
        return vectors(np.concatenate([ids[:, :1], ids[:, :-1]], axis=1))

    expected = np.zeros((5, 5), dtype=bool)
    expected[[0, 1, 2, 3, 4], [0, 0, 1, 2, 3]] = True
    np.testing.assert_array_equal(checks.influence(previous, IDS), np.stack([expected] * 3))


def test_the_model_is_causal_and_hears_everything(logits, example):
    lower = np.tri(example.ids.shape[1], dtype=bool)
    np.testing.assert_array_equal(checks.influence(logits, example.ids), np.stack([lower] * 3))
    assert checks.causality(logits, example.ids)
    assert checks.sensitivity(logits, example.ids)
    assert checks.causality(running_sum, IDS).numbers == {"leaks": []}
    assert checks.sensitivity(running_sum, IDS).numbers == {"deaf": []}


@pytest.mark.parametrize("cut", [1, 2, 3, 4])
def test_causality_sees_a_leak_of_one_bit_at_every_cut(cut):
    def leaky(ids):
        y = running_sum(ids)
        y[1, cut - 1, 0] += np.spacing(y[1, cut - 1, 0]) * (ids[1, cut] == IDS[1, cut])
        return y

    finding = checks.causality(leaky, IDS)
    assert not finding
    assert finding.numbers["leaks"] == [(1, cut - 1, cut)]
    assert finding.message.startswith(
        f"position {cut - 1} of row 1 reads ahead: changing the token at position {cut}"
    )


@pytest.mark.parametrize(("position", "token"), [(3, 0), (3, 2), (3, 3), (1, 0), (0, 0)])
def test_sensitivity_names_the_deaf_position(position, token):
    def deaf(ids):
        y = running_sum(ids)
        y[2, position] -= (token + 1) * vectors(ids)[2, token]  # as much as the sum took from it
        return np.round(y, 6)

    finding = checks.sensitivity(deaf, IDS)
    assert not finding
    assert finding.numbers["deaf"] == [(2, position, token)]
    assert finding.message.startswith(
        f"position {position} of row 2 is deaf: changing the token at position {token}"
    )


@pytest.mark.parametrize("token", range(4))
def test_a_leak_that_only_one_token_makes(token):
    """Every other id is tried, with vocab_size also those that do not occur."""

    def leaky(ids):
        y = running_sum(ids)
        y[:, :-1] += 1e-9 * (ids[:, 1:, np.newaxis] == token)
        return y

    for ids in (IDS, np.where(IDS == 3, 0, IDS)):
        assert checks.causality(leaky, ids, 4).failed
        assert checks.causality(leaky, ids).failed == (token in ids)
    assert not (checks.influence(leaky, IDS, 4) == checks.influence(running_sum, IDS, 4)).all()


def test_rows_that_mix_for_one_token_only():
    def mixing(ids):
        return running_sum(ids) + 1e-9 * (ids == 3).any()

    ids = np.array([[2, 0, 1], [1, 1, 0]])
    assert checks.batch_independence(mixing, ids)
    assert checks.batch_independence(mixing, ids, 4).failed


def filled(fill, loud):
    """One head that reads the letters, with forbidden scores filled in, and queries multiplied by `loud`."""

    def heads(ids):
        x = vectors(ids)
        scores = loud * (x * [1, -1]) @ x.swapaxes(-1, -2)
        p = ops.softmax(np.where(np.tri(ids.shape[1], dtype=bool), scores, fill))
        return p @ x

    return heads


def test_a_leak_below_the_last_bit_needs_louder_queries():
    assert checks.causality(filled(-np.inf, 1), IDS)
    assert checks.causality(filled(-50, 1), IDS)  # the docstring says so
    assert checks.causality(filled(-50, 100), IDS).failed
    assert checks.causality(filled(-np.inf, 100), IDS)


@pytest.mark.parametrize("noise", [1e-15, 0.1])
def test_a_function_that_is_not_deterministic(noise, rng):
    """Dropout, or an own order of summation, would read as a leak and as rows that mix."""

    def noisy(ids):
        return running_sum(ids) * (1 + noise * rng.integers(0, 9, (*ids.shape, 2)))

    for check in (checks.causality, checks.sensitivity, checks.batch_independence, checks.order_matters):
        finding = check(noisy, IDS)
        assert finding.verdict == CANNOT_TELL, finding
        assert "not deterministic" in finding.message
        assert "switch dropout off or seed it" in finding.message
    with pytest.raises(ValueError, match="not deterministic"):
        checks.influence(noisy, IDS)
    finding = checks.shift_invariance(lambda p: np.cos(np.subtract.outer(p, p)) + noise * rng.random(), 5)
    assert finding.verdict == CANNOT_TELL, finding


def test_each_misses_what_the_other_sees():
    def constant(ids):
        return np.zeros((*ids.shape, 2))

    def average(ids):
        return np.broadcast_to(running_sum(ids)[:, -1:], (*ids.shape, 2)).copy()

    assert checks.causality(constant, IDS)
    assert not checks.sensitivity(constant, IDS)
    assert checks.sensitivity(average, IDS)
    assert not checks.causality(average, IDS)


# batch_independence


def test_rows_that_do_not_mix(logits, example):
    assert checks.batch_independence(logits, example.ids)


@pytest.mark.parametrize(("row", "other"), [(0, 1), (1, 0), (1, 2), (2, 0)])
def test_rows_that_mix(row, other):
    def mixing(ids):
        y = running_sum(ids)
        y[row, 4] += 1e-9 * y[other, 4]
        return y

    finding = checks.batch_independence(mixing, IDS)
    assert not finding
    assert finding.numbers["mixed"] == [row]
    assert finding.message == f"row {row} changes when only other rows of the batch do"


def test_a_division_by_the_batch_size_goes_unseen():
    assert checks.batch_independence(lambda ids: running_sum(ids) / len(ids), IDS)


# order_matters


def test_order(logits, example):
    assert checks.order_matters(logits, example.ids)
    assert checks.order_matters(running_sum, IDS)


def test_a_set_has_no_order():
    def average(ids):
        return np.cumsum(vectors(ids), axis=1)

    finding = checks.order_matters(average, IDS)
    assert not finding
    assert finding.numbers["change"] < 1e-15
    assert "order has no effect" in finding.message


def test_rounding_is_not_order():
    def average(ids):
        return np.cumsum(0.1 * vectors(ids).astype(np.float32), axis=1)

    assert checks.order_matters(average, IDS).verdict == CANNOT_TELL  # float32 shows no more


@pytest.mark.parametrize(
    ("scale", "dtype", "verdict"),
    [
        (1.0, np.float32, PASSED),
        (1e-2, np.float32, CANNOT_TELL),
        (1e-3, np.float32, CANNOT_TELL),
        (1e-6, np.float32, CANNOT_TELL),
        (1e-2, np.float64, PASSED),
        (1e-3, np.float64, CANNOT_TELL),
    ],
)
def test_a_small_start_in_float32_is_not_accused(scale, dtype, verdict, example):
    config = ORIGINAL.model.ModelConfig(11, d_model=24, n_heads=4, n_layers=1, d_ff=20)
    params = {
        key: (array * (scale if key[-2:] in ("wq", "wk", "wv", "wo") else 1)).astype(dtype)
        for key, array in init_params(config, seed=0).items()
    }

    def logits(ids, positions=None):
        return ORIGINAL.model.forward(params, ids, config, positions=positions)[0]

    assert checks.order_matters(logits, example.ids).verdict == verdict
    finding = checks.shift_invariance(lambda positions: logits(example.ids, positions), 7)
    assert finding.verdict == verdict, finding


def test_order_matters_sees_a_missing_rotation_in_one_layer_only(example):
    for n_layers, seen in ((1, True), (2, False)):
        config = ORIGINAL.model.ModelConfig(11, d_model=24, n_heads=4, n_layers=n_layers, d_ff=20)
        params = init_params(config, seed=0)

        def unrotated(ids, params=params, config=config):
            return ORIGINAL.model.forward(params, ids, config, rotate=False)[0]

        assert bool(checks.order_matters(unrotated, example.ids)) is not seen


def test_equal_tokens_have_no_order():
    with pytest.raises(ValueError, match="ids must have different tokens before the last one"):
        checks.order_matters(running_sum, np.array([[1, 1, 1, 0], [0, 0, 0, 1]]))


# shift_invariance


def score_function(rng, rotate_q=rope, rotate_k=rope):
    q, k = rng.standard_normal((2, 5, 6))
    return lambda positions: rotate_q(q, positions) @ rotate_k(k, positions).swapaxes(-1, -2)


def test_scores_depend_on_distances(rng):
    finding = checks.shift_invariance(score_function(rng), 5)
    assert finding
    assert finding.numbers["shifted"] < 1e-14 < finding.numbers["stretched"]
    assert checks.shift_invariance(score_function(rng), 5, shift=-100.5)


def test_only_one_of_two_rotated(rng):
    finding = checks.shift_invariance(score_function(rng, rotate_k=lambda k, _: k), 5)
    assert not finding
    assert "depends on more than distances" in finding.message


def test_ignored_positions_are_not_invariance(rng):
    finding = checks.shift_invariance(score_function(rng, *[lambda x, _: x] * 2), 5)
    assert not finding
    assert "positions have no effect" in finding.message


def test_wrong_frequencies_go_unseen(rng):
    def degrees(x, positions):
        return rope(x, np.deg2rad(positions))

    assert checks.shift_invariance(score_function(rng, degrees, degrees), 5)


@pytest.mark.parametrize(
    ("T", "options", "error", "message"),
    [
        (1, {}, ValueError, "T must be at least 2"),
        (5.0, {}, TypeError, "T must be"),
        (5, {"shift": "3"}, TypeError, "shift must be a real number"),
        (5, {"shift": None}, TypeError, "shift must be a real number"),
        (5, {"shift": 0}, ValueError, "shift must be positive"),
        (5, {"shift": math.inf}, ValueError, "shift must be positive"),
    ],
)
def test_shift_invariance_refuses(T, options, error, message, rng):
    with pytest.raises(error, match=message):
        checks.shift_invariance(score_function(rng), T, **options)


# What the checks of functions of ids refuse

OF_IDS = [
    checks.influence,
    checks.causality,
    checks.sensitivity,
    checks.batch_independence,
    checks.order_matters,
]


@pytest.mark.parametrize("check", OF_IDS)
@pytest.mark.parametrize(
    ("ids", "error", "message"),
    [
        (IDS[0], ValueError, r"ids must have non-empty axes \(B, T\)"),
        (IDS.astype(float), TypeError, "ids must be integers, got dtype float64"),
        (IDS[:, :1], ValueError, "at least two positions"),
        (None, ValueError, r"ids must have non-empty axes \(B, T\)"),
        ([[1, 2], [3]], ValueError, "ids must be an array, got rows of different lengths"),
        ("attend", ValueError, r"ids must have non-empty axes \(B, T\)"),
        (np.zeros((2, 4), int), ValueError, "(at least two different ids|have different tokens)"),
    ],
)
def test_ids_refused(check, ids, error, message):
    with pytest.raises(error, match=message):
        check(running_sum, ids)


@pytest.mark.parametrize("check", [check for check in OF_IDS if check is not checks.order_matters])
@pytest.mark.parametrize(
    ("vocab_size", "error", "message"),
    [
        (3, ValueError, r"ids must lie in \[0, V\) = \[0, 3\), got 3"),
        (1, ValueError, "vocab_size must be at least 2"),
        (4.0, TypeError, "vocab_size"),
        ("abc", TypeError, "vocab_size"),
    ],
)
def test_vocab_size_refused(check, vocab_size, error, message):
    with pytest.raises(error, match=message):
        check(running_sum, IDS, vocab_size)


@pytest.mark.parametrize("check", OF_IDS)
@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        (None, TypeError, "function must be a function, got None"),
        (lambda ids: running_sum(ids).tolist(), TypeError, "must return a floating-point array, got list"),
        (lambda ids: running_sum(ids)[..., :0], ValueError, "must return finite numbers, got .* or none"),
        (lambda ids: (running_sum(ids), None), TypeError, "must return a floating-point array, got tuple"),
        (lambda ids: ids, TypeError, "must return a floating-point array"),
        (
            lambda ids: running_sum(ids).swapaxes(0, 1),
            ValueError,
            r"\(B, T\) = \(3, 5\), got shape \(5, 3, 2\)",
        ),
        (lambda ids: running_sum(ids) * np.nan, ValueError, "must return finite numbers"),
    ],
)
def test_functions_refused(check, function, error, message):
    with pytest.raises(error, match=message):
        check(function, IDS)


def test_one_row_cannot_mix():
    with pytest.raises(ValueError, match="at least two rows"):
        checks.batch_independence(running_sum, IDS[:1])


def test_the_callers_ids_are_left_alone():
    ids = IDS.copy()
    ids.setflags(write=False)

    def careless(ids):
        y = running_sum(ids)
        ids[:] = 0
        return y

    for check in OF_IDS:
        check(careless, ids)
    np.testing.assert_array_equal(ids, IDS)
