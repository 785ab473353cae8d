"""The model once more, written differently, with its gradients from HIPS autograd: something to compare with.

Nothing here is shared with labs.llm. Each text, head and query has its own turn in a loop and reads its own
slice of the keys, so there is no mask to get wrong; RoPE multiplies complex numbers; sigmoid is a tanh.
"""

import autograd
import autograd.numpy as anp


def logsumexp(x):
    return anp.max(x) + anp.log(anp.sum(anp.exp(x - anp.max(x))))


def norm(x, gain, eps):
    return x / anp.sqrt(anp.einsum("td,td->t", x, x) / x.shape[1] + eps)[:, None] * gain


def rotate(x, base):
    T, width = x.shape
    turns = anp.array([[t / base ** (2 * r / width) for r in range(width // 2)] for t in range(T)])
    turned = (x[:, ::2] + 1j * x[:, 1::2]) * anp.exp(1j * turns)
    return anp.reshape(anp.stack([anp.real(turned), anp.imag(turned)], axis=2), (T, width))


def head(z, wq, wk, wv, base):
    q, k, v = rotate(z @ wq, base), rotate(z @ wk, base), z @ wv
    rows = []
    for i in range(len(q)):
        scores = k[: i + 1] @ q[i] / q.shape[1] ** 0.5
        rows.append(anp.exp(scores - logsumexp(scores)) @ v[: i + 1])
    return anp.stack(rows)


def feed_forward(x, w1, w3, w2):
    gate_in = anp.einsum("td,df->tf", x, w1)
    gate = gate_in * (anp.tanh(gate_in / 2) + 1) / 2
    return anp.einsum("tf,td,df,fe->te", gate, x, w3, w2)


def text_logits(params, ids, config):
    """Return the logits of one text, (T, V)."""
    x = anp.stack([params["embedding"][i] for i in ids])
    width = config.d_model // config.n_heads
    for l in range(config.n_layers):
        attn_norm, wq, wk, wv, wo, ffn_norm, w1, w3, w2 = (
            params[f"blocks.{l}.{name}"]
            for name in ("attn_norm", "wq", "wk", "wv", "wo", "ffn_norm", "w1", "w3", "w2")
        )
        z = norm(x, attn_norm, config.norm_eps)
        for h in range(config.n_heads):
            mine = slice(h * width, (h + 1) * width)
            o = head(z, wq[:, mine], wk[:, mine], wv[:, mine], config.rope_base)
            x = x + o @ wo[mine]  # joining the heads and projecting is a sum over heads
        x = x + feed_forward(norm(x, ffn_norm, config.norm_eps), w1, w3, w2)
    return norm(x, params["final_norm"], config.norm_eps) @ params["unembedding"]


def logits(params, ids, config):
    """Return the logits, (B, T, V)."""
    return anp.stack([text_logits(params, text, config) for text in ids])


def loss(params, ids, targets, config):
    """Return the mean cross-entropy in nats."""
    total = 0.0
    for text, right in zip(ids, targets, strict=True):
        for row, target in zip(text_logits(params, text, config), right, strict=True):
            total = total + logsumexp(row) - row[target]
    return total / targets.size


def loss_and_grads(params, ids, targets, config):
    """Return the loss and the gradients, a dict with the keys of params."""
    return autograd.value_and_grad(loss)(params, ids, targets, config)
