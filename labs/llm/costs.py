"""What the model costs: parameters, floating-point operations and bytes, exact and itemised.

Functions return a dict of whole numbers that add up to the total, unless they say otherwise. Conventions:

- A FLOP is one floating-point multiplication or addition, so a multiply-add is 2.
- Only matrix products are counted. Norms, softmax, SiLU, RoPE, the residual sums, the loss and AdamW are not:
  they do a few operations for each number they make, a matrix product two for each row of its matrix.
- Attention is counted as model.py computes it: all T * T scores, the masked half included.
- Bytes are those of the arrays that are kept. Arrays that live for a moment come on top; see training_bytes.

Letters: B batch, T positions, D model width, H heads, F feed-forward width, V vocabulary, L layers.
"""

from labs.llm import arguments
from labs.llm.parameters import require_config


def parameter_counts(config):
    """Count the parameters.

        total = 2VD + L(4D^2 + 3DF) + 2LD + D

    Args:
        config: the ModelConfig.

    Returns: how many are in the embedding, in attention (wq, wk, wv, wo), in SwiGLU (w1, w3, w2), in the
        gains of the norms, and in the unembedding.
    """
    require_config(config)
    V, D, F, L = config.vocab_size, config.d_model, config.d_ff, config.n_layers
    return {
        "embedding": V * D,
        "attention": L * 4 * D**2,
        "swiglu": L * 3 * D * F,
        "norms": 2 * L * D + D,
        "unembedding": D * V,
    }


def forward_flops(config, B, T, *, past=0):
    """Count the FLOPs of one forward pass over (B, T) tokens: 2 * m * n * k for (m, k) @ (k, n).

    Args:
        config: the ModelConfig.
        B, T: the batch, and the tokens read in each row.
        past: how many earlier positions the kv_cache holds; their keys and values are read, not computed.

    Returns: FLOPs of the projections to q, k and v, of the scores q @ k^T, of the weighted sums p @ v, of the
        projection wo, of SwiGLU and of the unembedding.
    Source: Kaplan et al. 2020, arXiv:2001.08361, table 1. Its attention term, 2LTD for each token, is half of
        ours, 4LTD: see the conventions above.
    """
    require_config(config)
    B, T, past = *_batch(B, T), arguments.require_size("past", past, least=0)
    V, D, F, L = config.vocab_size, config.d_model, config.d_ff, config.n_layers
    multiply_adds = {
        "qkv": L * B * T * 3 * D**2,
        "scores": L * B * T * (past + T) * D,
        "weighted values": L * B * T * (past + T) * D,
        "wo": L * B * T * D**2,
        "swiglu": L * B * T * 3 * D * F,
        "unembedding": B * T * D * V,
    }
    return {item: 2 * count for item, count in multiply_adds.items()}


def backward_flops(config, B, T):
    """Count the FLOPs of one backward pass: twice those of the forward pass, item by item.

    Each product y = a @ b has two gradients, dy @ b^T and a^T @ dy, and each costs what the product did.

    Args and Returns: as for forward_flops, without a past.
    """
    return {item: 2 * count for item, count in forward_flops(config, B, T).items()}


def activation_bytes(config, B, T, dtype):
    """Count the bytes that the forward pass of a training step keeps for the backward pass.

    The batch itself, the parameters and the logits are not among them.

    Args:
        config: the ModelConfig.
        B, T: the sizes of the batch.
        dtype: of the parameters, np.float32 or np.float64.

    Returns: bytes of the residual stream (what goes into each norm), of the normalised vectors with the
        inverse norms, of q, k and v, of the attention weights, of the joined heads, of SwiGLU (u, gate, up,
        hidden), and of the loss (the softmax, and a boolean one-hot of the targets).
    """
    require_config(config)
    B, T = _batch(B, T)
    itemsize = _itemsize(dtype)
    V, D, F, H, L = config.vocab_size, config.d_model, config.d_ff, config.n_heads, config.n_layers
    norms = 2 * L + 1
    per_position = {
        "residual stream": norms * D * itemsize,
        "normalised": norms * (D + 1) * itemsize,
        "qkv": L * 3 * D * itemsize,
        "attention weights": L * H * T * itemsize,
        "joined": L * D * itemsize,
        "swiglu": L * 4 * F * itemsize,
        "loss": V * (itemsize + 1),
    }
    return {item: B * T * count for item, count in per_position.items()}


def training_bytes(config, B, T, dtype):
    """Count the bytes of a training step with AdamW.

    Gradients and activations are not all there at once: activations are dropped when the gradients are done.
    What the operations need for a moment comes on top, so the peak lies elsewhere than the sum.

    Args: as for activation_bytes.

    Returns: bytes of the parameters, of their gradients, of AdamW's mean and square, and of the activations.
    """
    parameters = sum(parameter_counts(config).values()) * _itemsize(dtype)
    return {
        "parameters": parameters,
        "gradients": parameters,
        "optimizer": 2 * parameters,
        "activations": sum(activation_bytes(config, B, T, dtype).values()),
    }


def kv_cache_bytes(config, B, T, dtype):
    """Return the bytes of a kv_cache of T positions, keys and values together, an int.

    2 * L * B * T * D * (bytes of a number)
    """
    require_config(config)
    B, T = _batch(B, T)
    return 2 * config.n_layers * B * T * config.d_model * _itemsize(dtype)


def _batch(B, T):
    return arguments.require_size("B", B), arguments.require_size("T", T)


def _itemsize(dtype):
    return arguments.require_float_type("dtype", dtype).itemsize
