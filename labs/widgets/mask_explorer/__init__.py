"""The widget MaskExplorer."""

from labs.widgets.mask_explorer.widget import MaskExplorer

__all__ = ["MaskExplorer"]
