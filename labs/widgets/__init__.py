"""The course's widgets: they run in JupyterLab, and without a kernel in the built pages."""

from labs.widgets.attention_heatmap import AttentionHeatmap
from labs.widgets.head_split import HeadSplit
from labs.widgets.mask_explorer import MaskExplorer
from labs.widgets.rope_explorer import RopeExplorer
from labs.widgets.tensor_grid import TensorGrid
from labs.widgets.trace_explorer import TraceExplorer

__all__ = [
    "AttentionHeatmap",
    "HeadSplit",
    "MaskExplorer",
    "RopeExplorer",
    "TensorGrid",
    "TraceExplorer",
]
