"""A finding has one of three verdicts, and every check says what it can and cannot see."""

import pytest

from labs.llm import checks
from labs.llm.checks import CANNOT_TELL, FAILED, PASSED, Finding


def test_a_finding_has_one_of_three_verdicts_and_is_true_only_if_it_passed():
    right, wrong = Finding(PASSED, "all well"), Finding(FAILED, "q is wrong", {"error": 1.0})
    unsure = Finding(CANNOT_TELL, "too small")
    assert [bool(each) for each in (right, wrong, unsure)] == [True, False, False]
    assert [each.passed for each in (right, wrong, unsure)] == [True, False, False]
    assert [each.failed for each in (right, wrong, unsure)] == [False, True, False]
    assert [str(each) for each in (right, wrong, unsure)] == [
        "passed: all well",
        "FAILED: q is wrong",
        "cannot tell: too small",
    ]
    assert right.raise_unless_passed() is right
    with pytest.raises(AssertionError, match="FAILED: q is wrong"):
        wrong.raise_unless_passed()
    with pytest.raises(AssertionError, match="cannot tell: too small"):
        unsure.raise_unless_passed()


@pytest.mark.parametrize("verdict", [True, False, None, "failed"])
def test_there_is_no_fourth_verdict(verdict):
    with pytest.raises(ValueError, match="verdict must be PASSED, FAILED or CANNOT_TELL"):
        Finding(verdict, "")


def test_every_check_says_what_it_can_and_cannot_see():
    names = [
        *("gradcheck", "taylor_slope", "agreement", "leaves_arguments_alone", "causality", "sensitivity"),
        *("batch_independence", "order_matters", "shift_invariance", "no_shared_arrays"),
        *("every_parameter_learns", "targets_aligned"),
    ]
    for name in names:
        text = getattr(checks, name).__doc__
        assert "CAN see:" in text, name
        assert "CANNOT see:" in text, name
