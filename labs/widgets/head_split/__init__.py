"""The widget HeadSplit."""

from labs.widgets.head_split.widget import HeadSplit

__all__ = ["HeadSplit"]
