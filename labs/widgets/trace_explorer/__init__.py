"""The widget TraceExplorer."""

from labs.widgets.trace_explorer.widget import TraceExplorer

__all__ = ["TraceExplorer"]
