"""Tables as pages and terminals show them."""

import numpy as np
import pytest

from labs.course.table import Table

TABLE = Table(
    ("version", "sum", "row", "check"),
    [("right", 1.0, np.array([-0.00001, 0.5]), True), ("a<b", 2, "none", np.False_)],
    decimals=2,
    caption="One of them is wrong",
)


def test_as_text():
    assert repr(TABLE).splitlines() == [
        "One of them is wrong",
        "version  sum   row        check",
        "right    1.00  0.00 0.50  passes",
        "a<b      2     none       FAILS",
    ]


def test_as_a_table_of_the_page():
    markup = TABLE._repr_html_()
    assert "<caption>One of them is wrong</caption>" in markup
    assert '<th scope="col">sum</th>' in markup
    assert '<th scope="row">a&lt;b</th><td>2</td><td>none</td>' in markup


def test_a_mark_is_a_sign_and_a_word():
    markup = TABLE._repr_html_()
    assert '<span class="labs-passes" role="img" aria-label="passes">✓</span>' in markup
    assert '<span class="labs-fails" role="img" aria-label="FAILS">✗</span>' in markup


def test_a_column_without_a_name_has_no_heading():
    assert "<thead><tr><td></td><th" in Table(("", "a"), [("b", 1)])._repr_html_()


def test_without_a_caption():
    assert "caption" not in Table(("a",), [("b",)])._repr_html_()
    assert repr(Table(("a",), [("b",)])) == "a\nb"


def test_rows_of_another_length_are_refused():
    with pytest.raises(ValueError, match=r"every row must have 2 cells.*got \['x'\]"):
        Table(("a", "b"), [("x",)])
