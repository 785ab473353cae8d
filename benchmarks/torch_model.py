"""The same model as a user of PyTorch would write it in eager mode, to be compared with labs.llm.

Fused where PyTorch offers it: one matrix for q, k and v, nn.RMSNorm, scaled_dot_product_attention,
cross_entropy, AdamW(fused=True). Attention can also be written out, which is faster for some sizes.
"""

import math

import torch
from torch import nn
from torch.nn import functional


class Attention(nn.Module):
    def __init__(self, config, context, explicit):
        super().__init__()
        self.n_heads, self.explicit = config.n_heads, explicit
        self.qkv = nn.Linear(config.d_model, 3 * config.d_model, bias=False)
        self.wo = nn.Linear(config.d_model, config.d_model, bias=False)
        frequencies = config.rope_base ** (-torch.arange(0, config.d_head, 2) / config.d_head)
        angles = torch.outer(torch.arange(context), frequencies)
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())
        self.register_buffer("future", torch.ones(context, context, dtype=torch.bool).triu(1))

    def forward(self, z):
        B, T, D = z.shape
        q, k, v = self.qkv(z).view(B, T, 3, self.n_heads, -1).permute(2, 0, 3, 1, 4)  # (B, H, T, dh) each
        q, k = self.rope(q), self.rope(k)
        if self.explicit:
            scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
            o = scores.masked_fill(self.future, -math.inf).softmax(dim=-1) @ v
        else:
            o = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.wo(o.transpose(1, 2).reshape(B, T, D))

    def rope(self, x):
        even, odd = x[..., 0::2], x[..., 1::2]
        rotated = even * self.cos - odd * self.sin, even * self.sin + odd * self.cos
        return torch.stack(rotated, dim=-1).flatten(-2)


class Block(nn.Module):
    def __init__(self, config, context, explicit):
        super().__init__()
        self.attn_norm = nn.RMSNorm(config.d_model, eps=config.norm_eps)
        self.attention = Attention(config, context, explicit)
        self.ffn_norm = nn.RMSNorm(config.d_model, eps=config.norm_eps)
        self.w1 = nn.Linear(config.d_model, config.d_ff, bias=False)
        self.w3 = nn.Linear(config.d_model, config.d_ff, bias=False)
        self.w2 = nn.Linear(config.d_ff, config.d_model, bias=False)

    def forward(self, x):
        r = x + self.attention(self.attn_norm(x))
        n = self.ffn_norm(r)
        return r + self.w2(functional.silu(self.w1(n)) * self.w3(n))


class Model(nn.Module):
    """The model for texts of exactly `context` tokens, with the parameters of labs.llm."""

    def __init__(self, params, config, context, explicit):
        super().__init__()
        self.embedding = nn.Embedding(config.vocab_size, config.d_model)
        self.blocks = nn.ModuleList(Block(config, context, explicit) for _ in range(config.n_layers))
        self.final_norm = nn.RMSNorm(config.d_model, eps=config.norm_eps)
        self.unembedding = nn.Linear(config.d_model, config.vocab_size, bias=False)
        self.load(params)

    @torch.no_grad()
    def load(self, params):
        """Take over the parameters of labs.llm; nn.Linear keeps the transpose of its matrix."""
        tensors = {key: torch.tensor(array) for key, array in params.items()}
        self.embedding.weight.copy_(tensors["embedding"])
        for l, block in enumerate(self.blocks):
            w = {
                key.split(".")[-1]: tensor
                for key, tensor in tensors.items()
                if key.startswith(f"blocks.{l}.")
            }
            block.attention.qkv.weight.copy_(torch.cat([w["wq"], w["wk"], w["wv"]], dim=1).T)
            block.attention.wo.weight.copy_(w["wo"].T)
            for name in ("w1", "w3", "w2"):
                getattr(block, name).weight.copy_(w[name].T)
            block.attn_norm.weight.copy_(w["attn_norm"])
            block.ffn_norm.weight.copy_(w["ffn_norm"])
        self.final_norm.weight.copy_(tensors["final_norm"])
        self.unembedding.weight.copy_(tensors["unembedding"].T)

    def forward(self, ids):
        x = self.embedding(ids)
        for block in self.blocks:
            x = block(x)
        return self.unembedding(self.final_norm(x))


class Trainer:
    """One training step at a time: forward, backward, AdamW."""

    def __init__(self, params, config, context, explicit, *, learning_rate, adamw):
        self.model = Model(params, config, context, explicit)
        matrices = [p for p in self.model.parameters() if p.ndim == 2]
        gains = [p for p in self.model.parameters() if p.ndim != 2]
        self.optimizer = torch.optim.AdamW(
            [
                {"params": matrices, "weight_decay": adamw.weight_decay},
                {"params": gains, "weight_decay": 0.0},
            ],
            lr=learning_rate,
            betas=(adamw.beta1, adamw.beta2),
            eps=adamw.eps,
            fused=True,
        )

    def gradients(self, inputs, targets):
        """Compute the gradients on a batch, tensors (B, T); returns the loss, a float in nats."""
        logits = self.model(inputs)
        loss = functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        return loss.item()

    def step(self, inputs, targets):
        """Take a step on a batch, tensors (B, T); returns the loss before it, a float in nats."""
        loss = self.gradients(inputs, targets)
        self.optimizer.step()
        return loss
