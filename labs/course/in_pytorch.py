"""The lines that chapters show under *The same in PyTorch*: read as text, never imported by the course.

PyTorch is not a dependency. The script that writes `labs/llm/mutants/torch_jax.npz` runs every function and
stores what it returns, with a hash of this file. A test compares the results with labs.llm and the hash with
this file, so whoever changes a line has to run the script. A chapter shows a function's body without the
docstring and the return.
"""

import torch
from torch.nn import functional as F  # noqa: N812, as everybody calls it


def shapes(q, H):
    """Chapter 1: heads, and back."""
    heads = q.unflatten(-1, (H, -1)).transpose(1, 2)  # (B,T,D) -> (B,T,H,dh) -> (B,H,T,dh)
    merged = heads.transpose(1, 2).flatten(-2)  # (B,H,T,dh) -> (B,T,H,dh) -> (B,T,D)
    return heads, merged


def attention(q, k, v):
    """Chapter 2: two ways to the same (B,H,T,dh), without a mask."""
    p = (q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5).softmax(dim=-1)
    o = p @ v  # (B,H,T,T) @ (B,H,T,dh) -> (B,H,T,dh)
    fused = F.scaled_dot_product_attention(q, k, v)  # the same in one call
    return o, fused


def causal_mask(q, k, v):
    """Chapter 3: the mask, given and built in."""
    T = q.shape[-2]
    mask = torch.ones(T, T, dtype=torch.bool).tril()  # True = may read
    masked = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    built_in = F.scaled_dot_product_attention(q, k, v, is_causal=True)  # the same
    return masked, built_in


def rms_norm(x, gain, eps):
    """Chapter 4: written out and built in."""
    y = gain * x * torch.rsqrt(x.pow(2).mean(dim=-1, keepdim=True) + eps)
    built_in = F.rms_norm(x, gain.shape, gain, eps)  # the same
    return y, built_in


def rope(x, base):
    """Chapter 5: a pair is a complex number, and a rotation is a product."""
    T, dh = x.shape[-2:]
    speeds = base ** (-torch.arange(0, dh, 2, dtype=x.dtype) / dh)
    angles = torch.outer(torch.arange(T, dtype=x.dtype), speeds)  # (T,dh/2)
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
    rotations = torch.polar(torch.ones_like(angles), angles)
    rotated = torch.view_as_real(pairs * rotations).flatten(-2)
    return (rotated,)


def swiglu(n, w1, w3, w2):
    """Chapter 6."""
    hidden = F.silu(n @ w1) * (n @ w3)  # (B,T,D) @ (D,F) -> (B,T,F)
    ffn_out = hidden @ w2  # (B,T,F) @ (F,D) -> (B,T,D)
    return hidden, ffn_out


def loss(logits, targets):
    """Chapter 7: each negative log-likelihood, and their mean."""
    nll = F.cross_entropy(logits.transpose(1, 2), targets, reduction="none")  # (B,T), in nats
    loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten())  # their mean
    return nll, loss
