"""The widget AttentionHeatmap."""

from labs.widgets.attention_heatmap.widget import AttentionHeatmap

__all__ = ["AttentionHeatmap"]
