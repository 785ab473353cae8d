"""Pictures of the course: the style of matplotlib, and the diagram of the model as SVG."""
