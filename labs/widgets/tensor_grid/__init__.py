"""The widget TensorGrid."""

from labs.widgets.tensor_grid.widget import TensorGrid

__all__ = ["TensorGrid"]
