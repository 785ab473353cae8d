"""How the notebooks print numbers: rounded the same way everywhere, so that outputs can be compared."""

import numpy as np


def fixed(values: np.ndarray | float, decimals: int = 4) -> str:
    """Write numbers with a fixed count of digits after the point, and zero without a sign.

    Args:
        values: an array of any shape, or one number.
        decimals: digits after the point.
    """
    rounded = np.round(np.asarray(values, dtype=float), decimals) + 0.0  # -0.0 + 0.0 is 0.0
    if rounded.ndim == 0:
        return f"{rounded:.{decimals}f}"
    return np.array2string(
        rounded,
        formatter={"float_kind": lambda value: f"{value:{decimals + 3}.{decimals}f}"},
        max_line_width=100,
        threshold=rounded.size + 1,
    )
