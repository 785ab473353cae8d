"""Numbers as the notebooks print them."""

import numpy as np
import pytest

from labs.course import text as course_text
from labs.course.text import fixed, in_pytorch


@pytest.mark.parametrize(
    ("values", "decimals", "text"),
    [
        (1.5, 4, "1.5000"),
        (np.float64(-0.00001), 4, "0.0000"),  # never a negative zero
        (np.array([1, -0.25]), 2, "[ 1.00 -0.25]"),
        (np.array([[-0.0, 12.345678]]), 3, "[[ 0.000 12.346]]"),
        (np.array([1e-9, 1e3]), 2, "[ 0.00 1000.00]"),
        (np.array([]), 2, "[]"),
    ],
)
def test_fixed(values, decimals, text):
    assert fixed(values, decimals) == text


def test_global_print_options_do_not_matter():
    with np.printoptions(precision=1, suppress=True, threshold=1, edgeitems=1):
        assert fixed(np.array([1 / 3, 2 / 3, 1, 2])) == "[ 0.3333  0.6667  1.0000  2.0000]"


def test_lines_in_pytorch_are_those_of_the_file(monkeypatch, tmp_path):
    file = tmp_path / "in_pytorch.py"
    file.write_text(
        'def first(x):\n    """Say."""\n    y = x + 1  # one\n    z = (\n        y\n    )\n    return z\n'
    )
    monkeypatch.setattr(course_text, "IN_PYTORCH", file)
    shown = in_pytorch("first")
    assert repr(shown) == "y = x + 1  # one\nz = (\n    y\n)"
    assert shown._repr_markdown_() == f"```python\n{shown!r}\n```"


def test_lines_of_no_function_are_refused():
    with pytest.raises(ValueError, match=r"a function of in_pytorch\.py, .*attention.*; got 'mamba'"):
        in_pytorch("mamba")
