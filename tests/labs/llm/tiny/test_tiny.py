"""The course's example is what the course says it is: every claim of a chapter about it starts here."""

import math

import numpy as np
import pytest

from labs.llm import model, tiny


def test_vocabulary_is_the_nine_letters_in_order():
    assert tiny.VOCABULARY == ("a", "c", "d", "e", "l", "n", "s", "t", "u")


def test_inputs_and_targets_are_the_words_one_step_apart():
    assert [tiny.decode(ids) for ids in tiny.INPUT_IDS] == ["atten", "causa"]
    assert [tiny.decode(ids) for ids in tiny.TARGET_IDS] == ["ttend", "ausal"]
    assert tiny.INPUT_IDS.tolist() == [[0, 7, 7, 3, 5], [1, 0, 8, 6, 0]]
    assert tiny.TARGET_IDS.tolist() == [[7, 7, 3, 5, 2], [0, 8, 6, 0, 4]]
    assert (tiny.INPUT_IDS[:, 1:] == tiny.TARGET_IDS[:, :-1]).all()


def test_ids_cannot_be_changed():
    for ids in (tiny.INPUT_IDS, tiny.TARGET_IDS):
        with pytest.raises(ValueError, match="read-only"):
            ids[0, 0] = 1


def test_encode_undoes_decode():
    for word in tiny.WORDS:
        assert tiny.decode(tiny.encode(word)) == word
    assert tiny.encode("cat").tolist() == [1, 0, 7]


@pytest.mark.parametrize(
    ("word", "words"),
    [
        ("", "got an empty word"),
        ("cot", r"acdelnstu, got 'o' in 'cot' at place 1"),
        ("Cat", r"got 'C' in 'Cat' at place 0"),
        ("at al", r"got ' ' in 'at al' at place 2"),
    ],
)
def test_encode_refuses(word, words):
    with pytest.raises(ValueError, match=words):
        tiny.encode(word)


@pytest.mark.parametrize("word", [None, 3, b"atten", list("atten"), np.array(list("atten"))])
def test_encode_refuses_what_is_no_text(word):
    with pytest.raises(TypeError, match=f"word must be a str such as 'atten', got {type(word).__name__}"):
        tiny.encode(word)


@pytest.mark.parametrize(
    ("ids", "error"),
    [([-1], ValueError), ([9], ValueError), ([1.0], TypeError), ([[1]], ValueError), ([], TypeError)],
)
def test_decode_refuses(ids, error):
    with pytest.raises(error, match="ids must"):
        tiny.decode(np.array(ids))


def test_what_follows_a_letter_depends_on_more_than_the_letter():
    followers = {}
    for letter, target in zip(tiny.INPUT_IDS.flat, tiny.TARGET_IDS.flat, strict=True):
        followers.setdefault(tiny.VOCABULARY[letter], set()).add(tiny.VOCABULARY[target])
    assert followers["t"] == {"t", "e"}
    assert followers["a"] == {"t", "u", "l"}


@pytest.mark.parametrize("load", [tiny.params, tiny.trained_params])
def test_stored_weights(load):
    params = load()
    model.require_params(params, tiny.CONFIG)
    assert sum(array.size for array in params.values()) == 808
    for key, array in params.items():
        assert array.dtype == np.float64
        assert (array == np.round(array, 2)).all(), f"{key} has more than two decimals"
        assert not (np.signbit(array) & (array == 0)).any(), f"{key} holds a negative zero"
    for key in ("blocks.0.attn_norm", "blocks.0.ffn_norm", "final_norm"):
        assert (params[key] != 1).any(), "gains of one would hide a forgotten gain"


@pytest.mark.parametrize("load", [tiny.params, tiny.trained_params])
def test_every_call_returns_fresh_arrays(load):
    first, second = load(), load()
    for key, array in first.items():
        assert not np.shares_memory(array, second[key])
        array[...] = 0
        assert (second[key] != 0).any()
    assert (load()["embedding"] != 0).any()


def test_loss_before_and_after_training():
    before, _ = model.loss_and_grads(tiny.params(), tiny.INPUT_IDS, tiny.TARGET_IDS, tiny.CONFIG)
    after, _ = model.loss_and_grads(tiny.trained_params(), tiny.INPUT_IDS, tiny.TARGET_IDS, tiny.CONFIG)
    assert before == pytest.approx(2.3222, abs=5e-5)
    assert before > math.log(9)  # a little worse than a uniform guess
    assert after == pytest.approx(0.0110, abs=5e-5)


def test_the_trained_model_predicts_all_ten_letters():
    logits, _ = model.forward(tiny.trained_params(), tiny.INPUT_IDS, tiny.CONFIG)
    assert (logits.argmax(axis=-1) == tiny.TARGET_IDS).all()
    untrained, _ = model.forward(tiny.params(), tiny.INPUT_IDS, tiny.CONFIG)
    assert (untrained.argmax(axis=-1) == tiny.TARGET_IDS).sum() < 4


def test_letters_that_are_never_read_get_no_gradient():
    _, grads = model.loss_and_grads(tiny.params(), tiny.INPUT_IDS, tiny.TARGET_IDS, tiny.CONFIG)
    unread = [tiny.VOCABULARY[i] for i in range(9) if (grads["embedding"][i] == 0).all()]
    assert unread == ["d", "l"]
