"""A tensor in words and as matrices."""

import numpy as np
import pytest

from labs.widgets.shared import modules

VALUES = np.linspace(-1, 1, 2 * 3 * 4).reshape(2, 3, 4)


@pytest.fixture(scope="module")
def call(javascript):
    return javascript("shared/tensor.js")


def record(values=VALUES, axes="btd", labels=None):
    """The plain record that the functions take."""
    return {
        "name": "X",
        "shape": values.shape,
        "axes": list(axes),
        "values": values.ravel().tolist(),
        "decimals": 2,
        "limit": 1.0,
        "labels": labels or {},
        "strings": modules.strings("tensor", "attention"),
    }


def test_shown_matrices(call):
    assert call("shownMatrices", [3, 2, 5, 5], [1]) == [[1, 0], [1, 1]]
    assert call("shownMatrices", [5, 8], []) == [[]]
    assert call("shownMatrices", [8], []) == [[]]


def test_matrix_holds_the_slice_of_the_array(call):
    spec = call("matrixSpec", record(), [1])
    assert [[cell["text"] for cell in row] for row in spec["cells"]] == [
        [f"{value:.2f}" for value in row] for row in VALUES[1]
    ]
    ids = [[cell["id"] for cell in row] for row in spec["cells"]]
    assert ids == np.arange(24).reshape(VALUES.shape)[1].tolist()
    assert spec["label"] == "X[1]"
    assert spec["caption"] == "batch 1"
    assert spec["corner"] == ["t", "d"]


def test_vector_is_a_single_row_without_a_row_axis(call):
    spec = call("matrixSpec", record(VALUES[0, 0], "d"), [])
    assert len(spec["cells"]) == 1
    assert spec["corner"] == [None, "d"]
    assert spec["rows"] == [{"index": None, "label": None}]
    assert spec["caption"] is None


def test_labels_follow_the_batch(call):
    tensor = record(labels={"t": [["c", "a", "t"], ["d", "o", "g"]]})
    assert [row["label"] for row in call("matrixSpec", tensor, [1])["rows"]] == ["d", "o", "g"]
    assert call("sentence", tensor, 12 + 2 * 4 + 3) == "X[1,2,3] = 1.00: position 2 “g”"


def test_sentence_without_labels_is_the_number_alone(call):
    assert call("sentence", record(), 0) == "X[0,0,0] = -1.00"


def test_axis_without_a_word_keeps_its_name(call):
    assert call("placeWords", record(VALUES, "bxd"), "x", 2, 0) == "x 2"


def test_sizes_are_written_as_in_the_course(call):
    assert [call("sizeName", axis) for axis in ("b", "t", "dh")] == ["B", "T", "dh"]


def test_options_have_letters_only_where_these_are_always_the_same(call):
    assert call("optionsOf", record(labels={"b": [["x", "y"]]}), 0) == ["0 x", "1 y"]
    assert call("optionsOf", record(labels={"t": [["c", "a", "t"], ["d", "o", "g"]]}), 1) == ["0", "1", "2"]


def test_what_is_no_number_has_words(call):
    strings = modules.strings("attention")
    assert call("numberText", -0.126, 2, strings) == "-0.13"
    assert call("((strings) => numberText(-Infinity, 2, strings))", strings) == "-inf"
    strings["attention"]["not_a_number"] = "none"
    assert call("((strings) => numberText(NaN, 2, strings))", strings) == "none"
