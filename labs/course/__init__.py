"""The vocabulary of the course: notation, colours, the diagram of the model, printed numbers."""
