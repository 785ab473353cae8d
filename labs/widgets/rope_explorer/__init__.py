"""The widget RopeExplorer."""

from labs.widgets.rope_explorer.widget import RopeExplorer

__all__ = ["RopeExplorer"]
