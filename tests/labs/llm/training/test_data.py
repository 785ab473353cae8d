"""Vocabulary, corpus and batches: targets are the next tokens, and nothing reaches beyond the text."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labs.llm.training.data import build_corpus, build_vocabulary, decode, draw_batch, encode, windows

# Vocabulary


def test_vocabulary_by_hand():
    assert build_vocabulary("banana Ab\n") == ("\n", " ", "A", "a", "b", "n")


@given(st.text(min_size=1))
def test_decode_inverts_encode(text):
    vocabulary = build_vocabulary(text)
    ids = encode(text, vocabulary)
    assert ids.shape == (len(text),)
    assert set(ids.tolist()) == set(range(len(vocabulary)))
    assert decode(ids, vocabulary) == text


def test_ids_by_hand():
    assert encode("nab", ("a", "b", "n")).tolist() == [2, 0, 1]
    assert decode(np.array([2, 0, 1], np.uint8), ("a", "b", "n")) == "nab"


def test_an_unknown_character_is_refused_with_its_position():
    with pytest.raises(ValueError, match=r"V = 3 characters .*, got 'x' at position 2"):
        encode("baxnx", ("a", "b", "n"))


@pytest.mark.parametrize("vocabulary", [("a", "a"), ("ab", "c"), ("", "a"), (1, 2), (["a"],), ("a", None)])
def test_a_vocabulary_of_anything_but_distinct_characters_is_refused(vocabulary):
    with pytest.raises(ValueError, match="single characters, each once"):
        encode("a", vocabulary)


@pytest.mark.parametrize("vocabulary", [set("ab"), {"a": 0, "b": 1}, frozenset("ab"), iter("ab"), None])
def test_a_vocabulary_without_an_order_is_refused(vocabulary):
    for call in (lambda: encode("ab", vocabulary), lambda: decode(np.array([0]), vocabulary)):
        with pytest.raises(
            TypeError, match="vocabulary must be a sequence of characters, such as a tuple, got"
        ):
            call()


def test_a_share_may_be_a_number_of_numpy():
    for share in (np.float32(0.25), np.float64(0.25)):
        assert len(build_corpus("x" * 20, share).validation) == 5
    with pytest.raises(TypeError, match="validation_share must be a real number"):
        build_corpus("x" * 20, "0.25")


@pytest.mark.parametrize(("text", "error"), [("", ValueError), (b"ab", TypeError), (None, TypeError)])
@pytest.mark.parametrize("function", [build_vocabulary, lambda text: encode(text, ("a",))])
def test_a_text_is_a_str_with_characters(function, text, error):
    with pytest.raises(error, match="text must"):
        function(text)


@pytest.mark.parametrize(
    ("ids", "error"), [([0, 3], ValueError), ([-1], ValueError), ([0.0], TypeError), ([[0, 1]], ValueError)]
)
def test_decode_refuses(ids, error):
    with pytest.raises(error, match="ids must"):
        decode(np.array(ids), ("a", "b", "n"))


# Corpus


def test_corpus_is_the_text_cut_once():
    text = "the cat sat on the mat"  # 22 characters
    corpus = build_corpus(text, 0.25)
    assert corpus.vocabulary == build_vocabulary(text)
    assert len(corpus.validation) == 5
    assert decode(np.concatenate([corpus.training, corpus.validation]), corpus.vocabulary) == text


@pytest.mark.parametrize("share", [0, 1, -0.1, 1.5, float("nan"), 0.01])
def test_a_share_that_leaves_a_part_empty_is_refused(share):
    with pytest.raises(ValueError, match=r"validation_share"):
        build_corpus("twenty-two characters.", share)


# Batches


def test_the_only_window_of_a_shortest_text():
    inputs, targets = draw_batch(np.array([5, 6, 7, 8]), 2, 3, np.random.default_rng(0))
    assert inputs.tolist() == [[5, 6, 7]] * 2
    assert targets.tolist() == [[6, 7, 8]] * 2


def test_batches_are_windows_of_the_text_and_every_place_is_drawn():
    ids = np.arange(100, 112)  # N = 12: an id says its place
    inputs, targets = draw_batch(ids, 400, 5, np.random.default_rng(1))
    assert inputs.shape == targets.shape == (400, 5)
    starts = inputs[:, 0] - 100
    assert np.array_equal(inputs, ids[starts[:, None] + np.arange(5)])
    assert np.array_equal(targets, inputs + 1)
    assert set(starts.tolist()) == set(range(7))  # the first to the last that still has all its targets


def test_a_batch_depends_on_the_generator_alone():
    ids = np.arange(1000)
    first, again, other = (draw_batch(ids, 4, 3, np.random.default_rng(seed))[0] for seed in (0, 0, 1))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize(("N", "expected"), [(4, 1), (6, 1), (7, 2), (8, 2), (10, 3)])
def test_windows_cover_each_target_once_in_order(N, expected):
    ids = np.arange(N)
    inputs, targets = windows(ids, 3)
    assert inputs.shape == targets.shape == (expected, 3)
    assert np.array_equal(inputs.ravel(), np.arange(3 * expected))
    assert np.array_equal(targets, inputs + 1)


BATCHES = {
    "draw_batch": lambda ids, context: draw_batch(ids, 2, context, np.random.default_rng(0)),
    "windows": windows,
}


@pytest.mark.parametrize("cut", BATCHES.values(), ids=BATCHES.keys())
@pytest.mark.parametrize(
    ("ids", "context", "error", "message"),
    [
        (np.arange(3), 3, ValueError, r"at least T \+ 1 = 4 tokens, .* got N = 3"),
        (np.arange(6).reshape(2, 3), 1, ValueError, r"ids must have non-empty axes \(N\)"),
        (np.arange(3.0), 1, TypeError, "ids must be integers"),
        (np.arange(3), 0, ValueError, "context must be at least 1"),
        (np.arange(3), 1.0, TypeError, "context must be an int"),
    ],
)
def test_cutting_refuses(cut, ids, context, error, message):
    with pytest.raises(error, match=message):
        cut(ids, context)


def test_a_batch_refuses_its_own_arguments():
    with pytest.raises(ValueError, match="batch_size must be at least 1"):
        draw_batch(np.arange(9), 0, 3, np.random.default_rng(0))
    with pytest.raises(TypeError, match=r"rng must be a np\.random\.Generator, got int"):
        draw_batch(np.arange(9), 2, 3, 0)
