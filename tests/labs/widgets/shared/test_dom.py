"""Templates of strings; what builds the page is tested through the widgets."""

import pytest


@pytest.fixture(scope="module")
def call(javascript):
    return javascript("shared/dom.js")


def test_fill(call):
    assert call("fill", "{n} of {all}: {n}", {"n": 3, "all": 80}) == "3 of 80: 3"


def test_fill_without_a_value_is_an_error(call):
    with pytest.raises(Exception, match=r"needs a value for \{all\}"):
        call("fill", "{n} of {all}", {"n": 3})
