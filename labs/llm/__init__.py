"""A decoder-only Transformer in NumPy, forward and backward. The ground floor, where a file uses those above:

    arguments    what public functions refuse, and the words they refuse it with
    ops          operations: each forward function, then its backward
    parameters   the sizes of a model, its parameters by name, their initial values
    model        heads, RoPE, masks, attention, SwiGLU, the block, the whole model, and the way back
    costs        parameters, floating-point operations and bytes, itemised
    generate     sampling, with and without a cache of keys and values

And the rooms:

    tiny         the example of the course: two words of five letters, weights of two decimals
    checks       find mistakes in any model: gradients, what is read, arrays
    trace        every tensor of both passes with its formula
    training     text to batches, AdamW, the loop, checkpoints
    mutants      planted mistakes, which check catches which, and what PyTorch and JAX compute

Nothing here imports more than NumPy and the standard library.
"""
