"""The course's widgets: they run in JupyterLab, and without a kernel in the built pages."""

from labs.widgets.tensor_grid import TensorGrid

__all__ = ["TensorGrid"]
