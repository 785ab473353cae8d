"""How the notebooks print numbers, rounded alike everywhere so that outputs can be compared, and code."""

import ast
import textwrap
from pathlib import Path

import numpy as np

#: The functions whose lines `in_pytorch` shows.
IN_PYTORCH = Path(__file__).with_name("in_pytorch.py")


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


class Code:
    """Python code as a cell's last line shows it: highlighted in a page and in a notebook."""

    def __init__(self, source: str):
        self._source = source

    def _repr_markdown_(self) -> str:
        return f"```python\n{self._source}\n```"

    def __repr__(self) -> str:
        return self._source


def in_pytorch(name: str) -> Code:
    """The lines of a function of `in_pytorch.py`, without its docstring and its return.

    Raises: ValueError if there is no function of that name.
    """
    text = IN_PYTORCH.read_text("utf8")
    functions = {node.name: node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}
    if name not in functions:
        raise ValueError(f"name must be a function of in_pytorch.py, {', '.join(functions)}; got {name!r}")
    _docstring, *lines, _return = functions[name].body
    return Code(textwrap.dedent("\n".join(text.splitlines()[lines[0].lineno - 1 : lines[-1].end_lineno])))
