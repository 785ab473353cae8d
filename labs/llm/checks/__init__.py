"""Checks that find mistakes in a model. The docstring of each says what it CAN see, and what it CANNOT.

They take functions, so that they can be pointed at this package, at a mutant of it, or at a model of yours:

    def logits(ids):
        return forward(params, ids, config)[0]

    causality(logits, ids)                        a Finding: the verdict, the reason, the numbers behind it
    causality(logits, ids).raise_unless_passed()  the same as an assertion

There are three verdicts: passed, FAILED (the model has a mistake), and cannot tell, which is never a pass:
the check has no way to judge, for example because rounding hides what it looks for, or because the function
is not deterministic. A mistake in the call raises ValueError or TypeError. Where two runs do the same
arithmetic at the same shapes, results are compared with ==, without a tolerance.
"""

from labs.llm.checks.arrays import every_parameter_learns, no_shared_arrays, targets_aligned
from labs.llm.checks.finding import CANNOT_TELL, FAILED, PASSED, Finding
from labs.llm.checks.gradients import (
    AGREEMENT_RTOL,
    GRADCHECK_RTOL,
    STEP,
    agreement,
    gradcheck,
    leaves_arguments_alone,
    numeric_gradient,
    relative_error,
    taylor_slope,
)
from labs.llm.checks.reading import (
    batch_independence,
    causality,
    influence,
    order_matters,
    sensitivity,
    shift_invariance,
)

__all__ = [
    "AGREEMENT_RTOL",
    "CANNOT_TELL",
    "FAILED",
    "GRADCHECK_RTOL",
    "PASSED",
    "STEP",
    "Finding",
    "agreement",
    "batch_independence",
    "causality",
    "every_parameter_learns",
    "gradcheck",
    "influence",
    "leaves_arguments_alone",
    "no_shared_arrays",
    "numeric_gradient",
    "order_matters",
    "relative_error",
    "sensitivity",
    "shift_invariance",
    "targets_aligned",
    "taylor_slope",
]
