"""Planted mistakes: the `catalogue`, the `planting` of one in a copy of this package, the `table` of which
check catches which. `torch_jax` has the numbers of two frameworks for the same examples.
"""
