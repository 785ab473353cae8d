"""The lines that chapters show under *The same in PyTorch*: read as text, never imported by the course.

PyTorch is not a dependency. The script that writes `labs/llm/mutants/torch_jax.npz` runs every function and
stores what it returns, with a hash of this file. A test compares the results with labs.llm and the hash with
this file, so whoever changes a line has to run the script. A chapter shows a function's body without the
docstring and the return.
"""

from torch.nn import functional as F  # noqa: N812, as everybody calls it


def attention(q, k, v):
    """Chapter 2: two ways to the same (B,H,T,dh), without a mask."""
    p = (q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5).softmax(dim=-1)
    o = p @ v  # (B,H,T,T) @ (B,H,T,dh) -> (B,H,T,dh)
    fused = F.scaled_dot_product_attention(q, k, v)  # the same in one call
    return o, fused
