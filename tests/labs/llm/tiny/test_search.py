"""The stored weights keep every bound, the bounds are those of the design, and each of them can be broken."""

import json

import numpy as np
import pytest

from labs.llm import tiny
from labs.llm.tiny import search
from labs.llm.tiny.search import broken_bounds, measure


def test_the_bounds():
    assert search.BOUNDS == {
        "smallest weight": (0.01, 1),
        "largest weight": (0, 0.9),
        "smallest entropy": (0.45, 1),
        "spread of entropy": (0.08, 1),
        "share of flat rows": (0, 0.2),
        "difference of heads": (0.35, 1),
        "winning columns": (3, 5),
        "effect of rope": (0.15, 0.6),
        "loss": (1.9, 2.5),
        "largest logit": (0, 3),
        "smallest activation": (5e-5, 6),
        "largest activation": (0, 6),
        "smallest gradient": (5e-5, 1),
        "faintest array": (0.05, 1),
        "strongest array": (0.05, 1),
        "nearest gain to one": (0.005, 0.3),
    }


def test_the_stored_draw_keeps_every_bound():
    assert broken_bounds(tiny.params()) == []
    assert set(measure(tiny.params())) == set(search.BOUNDS)


def scaled(factor, *names):
    """The stored draw with some arrays multiplied by a factor."""
    params = tiny.params()
    for key in params:
        if key.split(".")[-1] in names:
            params[key] = params[key] * factor
    return params


def replaced(**arrays):
    """The stored draw with some arrays of the block replaced."""
    return tiny.params() | {f"blocks.0.{name}": array for name, array in arrays.items()}


def with_entry(key, index, value):
    """The stored draw with one number replaced."""
    params = tiny.params()
    params[key][index] = value
    return params


WORSE = {
    "smallest weight": scaled(5, "wq"),
    "largest weight": scaled(5, "wk"),
    "smallest entropy": scaled(5, "wq"),
    "spread of entropy": scaled(0.1, "wq", "wk"),
    "share of flat rows": scaled(0.1, "wq"),
    "difference of heads": scaled(0.1, "wk"),
    "winning columns": replaced(wq=np.zeros((8, 8))),
    "effect of rope": scaled(0.1, "wq"),
    "loss": scaled(6, "unembedding"),
    "largest logit": scaled(6, "unembedding"),
    "smallest activation": with_entry("embedding", (0, 0), 0.0),
    "largest activation": scaled(10, "w1"),
    "smallest gradient": scaled(1e-3, "unembedding"),
    "faintest array": scaled(0.1, "unembedding"),
    "strongest array": scaled(0.05, "embedding"),
    "nearest gain to one": with_entry("final_norm", 3, 1.0),
}


@pytest.mark.parametrize("name", search.BOUNDS)
def test_worse_weights_break_the_bound(name):
    assert name in broken_bounds(WORSE[name])


def test_measures_of_equal_attention():
    measured = measure(replaced(wq=np.zeros((8, 8))))
    assert measured["smallest weight"] == pytest.approx(1 / 5)
    assert measured["largest weight"] == pytest.approx(1 / 2)
    assert measured["smallest entropy"] == pytest.approx(1)
    assert measured["spread of entropy"] == pytest.approx(0, abs=1e-12)
    assert measured["share of flat rows"] == 1
    assert measured["difference of heads"] == 0
    assert measured["effect of rope"] == 0


def test_a_draw_is_rounded_and_repeatable():
    params, again = search.draw(3), search.draw(3)
    for key, array in params.items():
        assert (array == again[key]).all()
        assert (array == np.round(array, 2)).all()
        assert not (np.signbit(array) & (array == 0)).any()
    gains = np.concatenate([array for key, array in params.items() if key.endswith("norm")])
    assert 0.7 <= gains.min() < 0.8
    assert 1.2 < gains.max() <= 1.3


def test_the_trained_weights_are_what_training_makes_of_the_stored_draw():
    trained = search.train(tiny.params())
    for key, array in tiny.trained_params().items():
        assert (array == trained[key]).all(), key


def test_training_changes_what_is_attended_to():
    difference = search.attention_weights(tiny.trained_params()) - search.attention_weights(tiny.params())
    assert np.abs(difference).max() > 0.4


def test_the_file_is_what_the_search_writes():
    text = tiny.WEIGHTS_PATH.read_text(encoding="utf-8")
    assert text == search.as_text(json.loads(text)["seed"], tiny.params(), tiny.trained_params())


def test_the_search_finds_the_stored_draw(monkeypatch, tmp_path, capsys):
    stored = tiny.WEIGHTS_PATH.read_text(encoding="utf-8")
    monkeypatch.setattr(tiny, "WEIGHTS_PATH", tmp_path / "weights.json")
    search.main()
    assert tiny.WEIGHTS_PATH.read_text(encoding="utf-8") == stored
    assert capsys.readouterr().out.count("within") == len(search.BOUNDS)
