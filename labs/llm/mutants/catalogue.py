"""What people get wrong in a Transformer: mistakes for `planting.py` to plant in a copy of this package."""

from labs.llm.mutants.planting import Edit, planted

# fmt: off
MISTAKES = (
    # linear and embedding
    planted(
        "linear: input in single precision",
        "The input is rounded to float32 on its way into the product.",
        Edit(
            "ops.linear",
            "return x @ weight",
            "return x.astype(np.float32).astype(x.dtype) @ weight",
        ),
    ),
    planted(
        "linear: weight not transposed",
        "The gradient goes back through W instead of its transpose.",
        Edit("ops.linear_backward", "dy @ weight.T", "dy @ weight"),
    ),
    planted(
        "linear: divided by B",
        "The weights' gradient is divided by the batch size, which the mean loss has already done.",
        Edit(
            "ops.linear_backward",
            "dweight = x.reshape(-1, D_in).T @ dy",
            "dweight = x.reshape(-1, D_in).T @ dy / len(x)",
        ),
    ),
    planted(
        "linear: last row only",
        "Each row of the batch overwrites the weights' gradient of the row before it.",
        Edit(
            "ops.linear_backward",
            "dweight = x.reshape(-1, D_in).T @ dy",
            "dweight = x[-1].reshape(-1, D_in).T @ dy.reshape(len(x), -1, D_out)[-1].reshape(-1, D_out)",
        ),
    ),
    planted(
        "linear: no dtype check",
        "Integers are multiplied as they are, and what comes out can have no gradient.",
        Edit(
            "ops._as_factors",
            'x, weight = as_floats("x", x), as_floats("weight", weight)',
            "x, weight = np.asarray(x), np.asarray(weight)",
        ),
    ),
    planted(
        "embedding: ids not checked",
        "An id of -1, often the sign for padding, quietly stands for the last token.",
        Edit("ops.embedding", 'ids = as_ids("ids", ids, table.shape[0])', "ids = np.asarray(ids)"),
    ),
    planted(
        "embedding: assigned",
        "Of a token that occurs several times only the last gradient is kept.",
        Edit("ops.embedding_backward", "np.add.at(dtable, ids, dx)", "dtable[ids] = dx"),
    ),
    planted(
        "embedding: buffered addition",
        "dtable[ids] += dx reads, adds and writes once per id, so a repeated token keeps one gradient.",
        Edit("ops.embedding_backward", "np.add.at(dtable, ids, dx)", "dtable[ids] += dx"),
    ),
    planted(
        "embedding: scaled forward only",
        "The vectors are multiplied by sqrt(D), as in the first Transformer, and their gradients are not.",
        Edit(
            "ops.embedding",
            "return table[ids], EmbeddingCache(ids, table)",
            "return table[ids] * table.shape[1] ** 0.5, EmbeddingCache(ids, table)",
        ),
    ),
    planted(
        "embedding: scaled both ways",
        "The vectors are multiplied by sqrt(D), and so are their gradients: right, for another model.",
        Edit(
            "ops.embedding",
            "return table[ids], EmbeddingCache(ids, table)",
            "return table[ids] * table.shape[1] ** 0.5, EmbeddingCache(ids, table)",
        ),
        Edit(
            "ops.embedding_backward",
            "np.add.at(dtable, ids, dx)",
            "np.add.at(dtable, ids, dx * table.shape[1] ** 0.5)",
        ),
    ),
    # RMSNorm
    planted(
        "norm: over positions",
        "The mean square runs over T instead of over the features.",
        Edit(
            "ops.rms_norm",
            "mean_square = np.vecdot(x, x)[..., np.newaxis] / gain.size",
            "mean_square = np.mean(x**2, axis=-2, keepdims=True)",
        ),
    ),
    planted(
        "norm: over everything",
        "One mean square serves for the whole batch.",
        Edit(
            "ops.rms_norm",
            "mean_square = np.vecdot(x, x)[..., np.newaxis] / gain.size",
            "mean_square = np.mean(x**2, keepdims=True)",
        ),
    ),
    planted(
        "norm: sum of squares",
        "The squares are added up and not averaged.",
        Edit(
            "ops.rms_norm",
            "np.vecdot(x, x)[..., np.newaxis] / gain.size",
            "np.vecdot(x, x)[..., np.newaxis]",
        ),
    ),
    planted(
        "norm: mean subtracted",
        "The mean is subtracted first: that is LayerNorm.",
        Edit(
            "ops.rms_norm",
            'x, gain = as_floats("x", x), as_floats("gain", gain)',
            'x, gain = as_floats("x", x) - np.mean(x, axis=-1, keepdims=True), as_floats("gain", gain)',
        ),
    ),
    planted(
        "norm: no square root",
        "The vector is divided by its mean square instead of the root of it.",
        Edit("ops.rms_norm", "inv_rms = 1 / np.sqrt(mean_square + eps)", "inv_rms = 1 / (mean_square + eps)"),
    ),
    planted(
        "norm: eps outside the root",
        "eps is added to the root instead of to the mean square.",
        Edit(
            "ops.rms_norm",
            "inv_rms = 1 / np.sqrt(mean_square + eps)",
            "inv_rms = 1 / (np.sqrt(mean_square) + eps)",
        ),
    ),
    planted(
        "norm: no eps",
        "Nothing guards against division by zero.",
        Edit(
            "ops.rms_norm",
            "inv_rms = 1 / np.sqrt(mean_square + eps)",
            "inv_rms = 1 / np.sqrt(mean_square)",
        ),
    ),
    planted(
        "norm: gain starts at zero",
        "The vector is multiplied by 1 + gain, while the gains are stored around one.",
        Edit(
            "ops.rms_norm",
            "return gain * (x * inv_rms), RMSNormCache",
            "return (1 + gain) * (x * inv_rms), RMSNormCache",
        ),
    ),
    planted(
        "norm: squared in half precision",
        "The mean square is computed in float16, where the square of 300 is infinite.",
        Edit(
            "ops.rms_norm",
            "mean_square = np.vecdot(x, x)",
            "mean_square = np.vecdot(x, x, dtype=np.float16)",
        ),
    ),
    planted(
        "norm backward: projection missing",
        "The root mean square is treated as a constant.",
        Edit(
            "ops.rms_norm_backward",
            "return inv_rms * (dunit - unit * mean), dgain",
            "return inv_rms * dunit, dgain",
        ),
    ),
    planted(
        "norm backward: gain forgotten in the dot product",
        "The projection uses dy where it should use dy * gain.",
        Edit("ops.rms_norm_backward", "mean = (dunit * unit).mean(", "mean = (dy * unit).mean("),
    ),
    planted(
        "norm backward: gain forgotten",
        "The gradient passes the gain as if it were one.",
        Edit("ops.rms_norm_backward", "dunit = dy * gain", "dunit = dy"),
    ),
    planted(
        "norm backward: projection not averaged",
        "The dot product in the projection is not divided by D.",
        Edit(
            "ops.rms_norm_backward",
            "mean = (dunit * unit).mean(axis=-1, keepdims=True)",
            "mean = (dunit * unit).sum(axis=-1, keepdims=True)",
        ),
    ),
    planted(
        "norm backward: gain's gradient from x",
        "The gain's gradient multiplies dy by x instead of the normalised x.",
        Edit("ops.rms_norm_backward", "dgain = (dy * unit)", "dgain = (dy * x)"),
    ),
    planted(
        "norm backward: gain's gradient averaged",
        "The gain's gradient is averaged over the positions that share it, not added up.",
        Edit(
            "ops.rms_norm_backward",
            "dgain = (dy * unit).reshape(-1, gain.size).sum(axis=0)",
            "dgain = (dy * unit).reshape(-1, gain.size).mean(axis=0)",
        ),
    ),
    planted(
        "norm backward: writes into its cache",
        "x is normalised in place, so a second backward pass starts from other numbers.",
        Edit(
            "ops.rms_norm_backward",
            "unit = x * inv_rms  # (..., D), recomputed instead of stored",
            "unit = np.multiply(x, inv_rms, out=x)",
        ),
    ),
    # softmax
    planted(
        "softmax: maximum not subtracted",
        "exp(x) is taken as it is, and overflows from 710 on.",
        Edit("ops._minus_max", "return x - largest", "return x.copy()"),
    ),
    planted(
        "softmax: one maximum for all",
        "The largest of all scores is subtracted everywhere: it cancels, but the future rounds the past.",
        Edit("ops._minus_max", "x.max(axis=axis, keepdims=True, ", "x.max(keepdims=True, "),
    ),
    planted(
        "softmax: one sum for all",
        "The weights of all rows together add up to one.",
        Edit("ops.softmax", "p /= p.sum(axis=axis, keepdims=True)", "p /= p.sum(keepdims=True)"),
    ),
    planted(
        "softmax: in place",
        "The maximum is subtracted from the caller's array.",
        Edit("ops._minus_max", "return x - largest", "x -= largest\n    return x"),
    ),
    planted(
        "softmax backward: row sum missing",
        "Each weight is treated as if the others did not depend on its score.",
        Edit(
            "ops.softmax_backward",
            "return p * (dp - np.expand_dims(np.vecdot(p, dp, axis=axis), axis))",
            "return p * dp",
        ),
    ),
    planted(
        "softmax backward: row sum unweighted",
        "The plain mean of dp is subtracted instead of the mean weighted by p.",
        Edit(
            "ops.softmax_backward",
            "np.expand_dims(np.vecdot(p, dp, axis=axis), axis)",
            "np.mean(dp, axis=axis, keepdims=True)",
        ),
    ),
    planted(
        "softmax backward: diagonal only",
        "Only dp_i/dx_i = p_i (1 - p_i) is kept of the Jacobian.",
        Edit(
            "ops.softmax_backward",
            "return p * (dp - np.expand_dims(np.vecdot(p, dp, axis=axis), axis))",
            "return p * (1 - p) * dp",
        ),
    ),
    planted(
        "softmax backward: sum over queries",
        "The sum runs along the queries instead of the keys.",
        Edit(
            "ops.softmax_backward",
            "np.expand_dims(np.vecdot(p, dp, axis=axis), axis)",
            "np.sum(p * dp, axis=0 if p.ndim == 1 else -2, keepdims=True)",
        ),
    ),
    # SiLU
    planted(
        "silu: sigmoid only",
        "The factor x is forgotten.",
        Edit("ops.silu", "return x * sigmoid(x)", "return sigmoid(x)"),
    ),
    planted(
        "silu: relu",
        "Negative numbers are cut off instead of held back.",
        Edit("ops.silu", "return x * sigmoid(x)", "return np.maximum(x, 0)"),
    ),
    planted(
        "silu: gelu, both ways",
        "x * sigmoid(1.702 x), an approximation of GELU, with its own right derivative.",
        Edit("ops.silu", "return x * sigmoid(x)", "return x * sigmoid(1.702 * x)"),
        Edit(
            "ops.silu_backward",
            "    s = sigmoid(x)\n    return dy * (s * (1 + x * (1 - s)))",
            "    s = sigmoid(1.702 * x)\n    return dy * (s * (1 + 1.702 * x * (1 - s)))",
        ),
    ),
    planted(
        "silu: overflows",
        "sigmoid is written as exp(x) / (1 + exp(x)), infinity over infinity for large x.",
        Edit("ops.sigmoid", "return 1 / (1 + np.exp(-x))", "return np.exp(x) / (1 + np.exp(x))"),
    ),
    planted(
        "silu backward: sigmoid as derivative",
        "The derivative of the factor sigmoid(x) is forgotten.",
        Edit("ops.silu_backward", "return dy * (s * (1 + x * (1 - s)))", "return dy * s"),
    ),
    planted(
        "silu backward: derivative of sigmoid",
        "The factor x is forgotten in the derivative.",
        Edit("ops.silu_backward", "return dy * (s * (1 + x * (1 - s)))", "return dy * (s * (1 - s))"),
    ),
    # cross-entropy
    planted(
        "loss: sum instead of mean",
        "The losses of the targets are added up, and only the gradient is that of their mean.",
        Edit(
            "ops.cross_entropy",
            "return -log_p[one_hot].mean(), CrossEntropyCache",
            "return -log_p[one_hot].sum(), CrossEntropyCache",
        ),
    ),
    planted(
        "loss: bits",
        "The loss is in bits, its gradient in nats.",
        Edit(
            "ops.cross_entropy",
            "return -log_p[one_hot].mean(), CrossEntropyCache",
            "return -log_p[one_hot].mean() / np.log(2), CrossEntropyCache",
        ),
    ),
    planted(
        "loss: small number inside the logarithm",
        "log(p + 1e-8) avoids log(0), and quietly changes every loss.",
        Edit(
            "ops.cross_entropy",
            "return -log_p[one_hot].mean(), CrossEntropyCache",
            "return -np.log(np.exp(log_p[one_hot]) + 1e-8).mean(), CrossEntropyCache",
        ),
    ),
    planted(
        "loss backward: divided by B",
        "The gradient is divided by the number of rows instead of the number of targets.",
        Edit("ops.cross_entropy_backward", "positions = p.size // p.shape[-1]", "positions = len(p)"),
    ),
    planted(
        "loss backward: two axes counted",
        "The number of targets is taken for B * T, the first two axes, whatever the logits have.",
        Edit(
            "ops.cross_entropy_backward",
            "positions = p.size // p.shape[-1]",
            "positions = np.prod(p.shape[:2])",
        ),
    ),
    planted(
        "loss backward: outer axes counted",
        "The number of targets is taken for that of the first axis times that of the last but one.",
        Edit(
            "ops.cross_entropy_backward",
            "positions = p.size // p.shape[-1]",
            "positions = len(p) * p.shape[max(-2, -p.ndim)]",
        ),
    ),
    planted(
        "loss backward: target not subtracted",
        "The gradient is p where it should be p - one_hot.",
        Edit(
            "ops.cross_entropy_backward",
            "return (p - one_hot) * (dloss / positions)",
            "return p * (dloss / positions)",
        ),
    ),
    planted(
        "loss backward: sign",
        "Every gradient of the model points uphill.",
        Edit(
            "ops.cross_entropy_backward",
            "return (p - one_hot) * (dloss / positions)",
            "return (one_hot - p) * (dloss / positions)",
        ),
    ),
    planted(
        "loss backward: upstream gradient ignored",
        "dloss is taken for one, which it is until somebody weights the loss.",
        Edit(
            "ops.cross_entropy_backward",
            "return (p - one_hot) * (dloss / positions)",
            "return (p - one_hot) * (1 / positions)",
        ),
    ),
    # initial parameters
    planted(
        "init: layers share their matrices",
        "Every layer holds the arrays of layer 0.",
        Edit(
            "parameters.init_params",
            "params[key] = (scale * rng.standard_normal(shape)).astype(dtype)",
            "params[key] = "
            'params.get(f"blocks.0.{name}", (scale * rng.standard_normal(shape)).astype(dtype))',
        ),
    ),
    planted(
        "init: norms share their gain",
        "All norms hold one array.",
        Edit(
            "parameters.init_params",
            "params[key] = np.ones(shape, dtype)",
            'params[key] = params.get("blocks.0.attn_norm", np.ones(shape, dtype))',
        ),
    ),
    planted(
        "init: every matrix from the same seed",
        "The generator starts anew for each matrix, so wq, wk and wv are equal.",
        Edit(
            "parameters.init_params",
            "(scale * rng.standard_normal(shape))",
            "(scale * np.random.default_rng(seed).standard_normal(shape))",
        ),
    ),
    planted(
        "init: loud unembedding",
        "The logits start out large, and the first loss far above log V.",
        Edit(
            "parameters.init_params",
            'if name == "unembedding":\n            scale /= 10',
            'if name == "unembedding":\n            scale *= 10',
        ),
    ),
    # heads
    planted(
        "split: without swap",
        "A plain reshape to (B, H, T, dh) has the right shape and mixes positions into heads.",
        Edit(
            "model.split_heads",
            "x.reshape(B, T, n_heads, D // n_heads).swapaxes(1, 2)",
            "x.reshape(B, n_heads, T, D // n_heads)",
        ),
    ),
    planted(
        "split: batch and head swapped",
        "The heads come before the batch.",
        Edit(
            "model.split_heads",
            "x.reshape(B, T, n_heads, D // n_heads).swapaxes(1, 2)",
            "x.reshape(B, T, n_heads, D // n_heads).transpose(2, 0, 1, 3)",
        ),
    ),
    planted(
        "split: features dealt out in turn",
        "Head h takes every H-th feature instead of dh neighbours.",
        Edit(
            "model.split_heads",
            "x.reshape(B, T, n_heads, D // n_heads).swapaxes(1, 2)",
            "x.reshape(B, T, D // n_heads, n_heads).transpose(0, 3, 1, 2)",
        ),
    ),
    planted(
        "merge: without swap",
        "A plain reshape to (B, T, D) puts positions of one head side by side.",
        Edit("model.merge_heads", "x.swapaxes(1, 2).reshape(B, T, H * dh)", "x.reshape(B, T, H * dh)"),
    ),
    planted(
        "merge: features dealt out in turn",
        "The features of the heads alternate instead of standing head by head.",
        Edit(
            "model.merge_heads",
            "x.swapaxes(1, 2).reshape(B, T, H * dh)",
            "x.transpose(0, 2, 3, 1).reshape(B, T, H * dh)",
        ),
    ),
    # RoPE
    planted(
        "rope: half-split pairs",
        "Feature r is paired with r + dh/2: a good convention, but not the one of these weights.",
        Edit(
            "model.rope",
            "even, odd = x[..., 0::2], x[..., 1::2]",
            "even, odd = x[..., : dh // 2], x[..., dh // 2 :]",
        ),
        Edit("model.rope", "y[..., 0::2] = even", "y[..., : dh // 2] = even"),
        Edit("model.rope", "y[..., 1::2] = even", "y[..., dh // 2 :] = even"),
    ),
    planted(
        "rope: mixed pairs",
        "Pairs are read half-split and written interleaved.",
        Edit(
            "model.rope",
            "even, odd = x[..., 0::2], x[..., 1::2]",
            "even, odd = x[..., : dh // 2], x[..., dh // 2 :]",
        ),
    ),
    planted(
        "rope: sign",
        "One sine has the wrong sign: a stretch instead of a rotation.",
        Edit("model.rope", "y[..., 0::2] = even * cos - odd * sin", "y[..., 0::2] = even * cos + odd * sin"),
    ),
    planted(
        "rope: wrong direction",
        "Everything is rotated backwards, and back forwards.",
        Edit(
            "model.rope",
            "np.outer(-positions if inverse else positions, frequencies)",
            "np.outer(positions if inverse else -positions, frequencies)",
        ),
    ),
    planted(
        "rope: exponent without its 2",
        "The frequencies are base ** (-r / dh), those of a head twice as wide.",
        Edit(
            "model.rope",
            "base ** (-np.arange(0, dh, 2) / dh)",
            "base ** (-np.arange(0, dh, 2) / (2 * dh))",
        ),
    ),
    planted(
        "rope: frequencies in single precision",
        "The frequencies are rounded to float32, and the angles of late positions with them.",
        Edit(
            "model.rope",
            "frequencies = base ** (-np.arange(0, dh, 2) / dh)",
            "frequencies = (base ** (-np.arange(0, dh, 2) / dh)).astype(np.float32)",
        ),
    ),
    planted(
        "rope: frequencies from D",
        "The whole width is rotated before it is split into heads.",
        Edit(
            "model.block",
            "q, k = rope(q, positions, base=config.rope_base), rope(k, positions, base=config.rope_base)",
            "q, k = (\n"
            "            split_heads(rope(merge_heads(each), positions, base=config.rope_base), "
            "config.n_heads)\n"
            "            for each in (q, k)\n"
            "        )",
        ),
    ),
    planted(
        "rope: degrees",
        "The angles are taken for degrees.",
        Edit(
            "model.rope",
            "angles = np.outer(-positions if inverse else positions, frequencies)",
            "angles = np.deg2rad(np.outer(-positions if inverse else positions, frequencies))",
        ),
    ),
    planted(
        "rope: positions from one",
        "Positions are counted from one, for queries and keys alike.",
        Edit(
            "model.rope",
            "positions = arguments.as_positions(positions, T)",
            "positions = arguments.as_positions(positions, T) + 1",
        ),
    ),
    planted(
        "rope: keys one position late",
        "Keys are rotated by one position more than queries.",
        Edit(
            "model.block",
            "rope(q, positions, base=config.rope_base), rope(k, positions, base=config.rope_base)",
            "rope(q, positions, base=config.rope_base), rope(\n"
            "            k, arguments.as_positions(positions, x.shape[1]) + 1, base=config.rope_base\n"
            "        )",
        ),
    ),
    planted(
        "rope: queries only",
        "Keys are not rotated.",
        Edit(
            "model.block",
            "q, k = rope(q, positions, base=config.rope_base), rope(k, positions, base=config.rope_base)",
            "q = rope(q, positions, base=config.rope_base)",
        ),
    ),
    planted(
        "rope: keys only",
        "Queries are not rotated.",
        Edit(
            "model.block",
            "q, k = rope(q, positions, base=config.rope_base), rope(k, positions, base=config.rope_base)",
            "k = rope(k, positions, base=config.rope_base)",
        ),
    ),
    planted(
        "rope: values too",
        "Values are rotated like queries and keys, and bring their absolute position along.",
        Edit(
            "model.block",
            "o, attention_cache = attention(q, k, v, mask)",
            "v = rope(v, positions, base=config.rope_base)\n"
            "    o, attention_cache = attention(q, k, v, mask)",
        ),
    ),
    planted(
        "rope: missing, both ways",
        "Nothing is rotated, forward or backward.",
        Edit("model.block", "    if rotate:\n", "    if False:\n"),
        Edit("model.block_backward", "    if cache.rotate:\n", "    if False:\n"),
    ),
    planted(
        "rope: given positions ignored",
        "Queries and keys are always rotated as positions 0 to T-1, which decoding step by step will notice.",
        Edit(
            "model.block",
            "q, k = rope(q, positions, base=config.rope_base), rope(k, positions, base=config.rope_base)",
            "q, k = rope(q, base=config.rope_base), rope(k, base=config.rope_base)",
        ),
    ),
    planted(
        "rope: given positions in the first layer only",
        "All layers but the first count from zero, whatever positions the caller gives.",
        Edit(
            "model.forward",
            "positions=positions, rotate=rotate)",
            "positions=None if l else positions, rotate=rotate)",
        ),
    ),
    planted(
        "rope: rotate=False ignored",
        "Queries and keys are rotated whatever the caller says, forward and backward.",
        Edit("model.forward", "positions=positions, rotate=rotate)", "positions=positions)"),
    ),
    planted(
        "rope: base of the configuration ignored",
        "The default base is used both ways whatever the configuration says.",
        Edit(
            "model.block",
            "q, k = rope(q, positions, base=config.rope_base), rope(k, positions, base=config.rope_base)",
            "q, k = rope(q, positions), rope(k, positions)",
        ),
        Edit(
            "model.block_backward",
            "dq = rope(dq, cache.positions, base=config.rope_base, inverse=True)",
            "dq = rope(dq, cache.positions, inverse=True)",
        ),
        Edit(
            "model.block_backward",
            "dk = rope(dk, cache.positions, base=config.rope_base, inverse=True)",
            "dk = rope(dk, cache.positions, inverse=True)",
        ),
    ),
    planted(
        "rope backward: rotated forwards",
        "The gradient is rotated as the forward pass rotates, not back.",
        Edit(
            "model.rope",
            "np.outer(-positions if inverse else positions, frequencies)",
            "np.outer(positions, frequencies)",
        ),
    ),
    planted(
        "rope backward: forgotten",
        "The gradients of queries and keys are not rotated back.",
        Edit("model.block_backward", "    if cache.rotate:\n", "    if False:\n"),
    ),
    planted(
        "rope backward: rotate=False ignored",
        "The gradients of queries and keys are rotated back even where nothing was rotated.",
        Edit("model.block_backward", "    if cache.rotate:\n", "    if True:\n"),
    ),
    planted(
        "rope backward: given positions ignored",
        "The gradients are rotated back from positions 0 to T-1, whatever positions were given.",
        Edit(
            "model.block_backward",
            "dq = rope(dq, cache.positions, base=config.rope_base, inverse=True)",
            "dq = rope(dq, base=config.rope_base, inverse=True)",
        ),
        Edit(
            "model.block_backward",
            "dk = rope(dk, cache.positions, base=config.rope_base, inverse=True)",
            "dk = rope(dk, base=config.rope_base, inverse=True)",
        ),
    ),
    # the mask
    planted(
        "mask: shifted",
        "Every position may read one token ahead, the very one it has to predict.",
        Edit(
            "model.causal_mask",
            "np.tri(t_query, t_key, k=t_key - t_query, dtype=bool)",
            "np.tri(t_query, t_key, k=t_key - t_query + 1, dtype=bool)",
        ),
    ),
    planted(
        "mask: strict",
        "No position may read itself, and the first nothing at all.",
        Edit(
            "model.causal_mask",
            "np.tri(t_query, t_key, k=t_key - t_query, dtype=bool)",
            "np.tri(t_query, t_key, k=t_key - t_query - 1, dtype=bool)",
        ),
    ),
    planted(
        "mask: inverted",
        "What may be read is forbidden, and the other way round.",
        Edit(
            "model.causal_mask",
            "return np.tri(t_query, t_key, k=t_key - t_query, dtype=bool)",
            "return ~np.tri(t_query, t_key, k=t_key - t_query, dtype=bool)",
        ),
    ),
    planted(
        "mask: upper triangle",
        "Every position reads itself and what follows.",
        Edit(
            "model.causal_mask",
            "return np.tri(t_query, t_key, k=t_key - t_query, dtype=bool)",
            "return np.tri(t_key, t_query, k=t_query - t_key, dtype=bool).T",
        ),
    ),
    planted(
        "mask: absent",
        "Everything may be read.",
        Edit(
            "model.causal_mask",
            "return np.tri(t_query, t_key, k=t_key - t_query, dtype=bool)",
            "return np.ones((t_query, t_key), dtype=bool)",
        ),
    ),
    planted(
        "mask: a window",
        "Only the last three positions are within reach.",
        Edit(
            "model.causal_mask",
            "return np.tri(t_query, t_key, k=t_key - t_query, dtype=bool)",
            "return np.tri(t_query, t_key, k=t_key - t_query, dtype=bool) & ~np.tri(\n"
            "        t_query, t_key, k=t_key - t_query - 3, dtype=bool\n"
            "    )",
        ),
    ),
    planted(
        "mask: queries first",
        "With more keys than queries, the queries are taken for the first positions instead of the last.",
        Edit(
            "model.causal_mask",
            "np.tri(t_query, t_key, k=t_key - t_query, dtype=bool)",
            "np.tri(t_query, t_key, dtype=bool)",
        ),
    ),
    planted(
        "mask: first layer only",
        "All layers but the first may read everything.",
        Edit(
            "model.forward",
            "x, cache = block(x, block_weights(params, l), config, mask=mask, positions",
            "every = np.ones((ids.shape[1],) * 2, dtype=bool) if l else mask\n"
            "        x, cache = block(x, block_weights(params, l), config, mask=every, positions",
        ),
    ),
    planted(
        "mask: given mask ignored",
        "The model is always causal, whatever mask the caller gives.",
        Edit("model.forward", "config, mask=mask, positions", "config, mask=None, positions"),
    ),
    planted(
        "mask: given mask in the first layer only",
        "All layers but the first are causal, whatever mask the caller gives.",
        Edit("model.forward", "config, mask=mask, positions", "config, mask=None if l else mask, positions"),
    ),
    planted(
        "mask: after softmax",
        "The weights of forbidden keys are set to zero after softmax, so the sum still knows the future.",
        Edit(
            "model.attention",
            "np.copyto(scores, -np.inf, where=~mask)\n    p = ops.softmax(scores)",
            "p = ops.softmax(scores) * mask",
        ),
    ),
    planted(
        "mask: after softmax, normalised again",
        "Right in exact arithmetic; but the maximum is taken over the future too, and rounds the past by it.",
        Edit(
            "model.attention",
            "np.copyto(scores, -np.inf, where=~mask)\n    p = ops.softmax(scores)",
            "p = ops.softmax(scores) * mask\n    p /= p.sum(axis=-1, keepdims=True)",
        ),
    ),
    planted(
        "mask: -10 instead of -inf",
        "A forbidden key keeps a weight of about exp(-10).",
        Edit("model.attention", "np.copyto(scores, -np.inf, ", "np.copyto(scores, -10.0, "),
    ),
    planted(
        "padding mask: on the queries",
        "The padding may not read, where it may not be read.",
        Edit(
            "model.padding_mask",
            "return keep[:, np.newaxis, np.newaxis, :]",
            "return keep[:, np.newaxis, :, np.newaxis]",
        ),
    ),
    planted(
        "mask: -50 instead of -inf",
        "A forbidden key keeps a weight of about exp(-50), too little to move a bit until scores are large.",
        Edit("model.attention", "np.copyto(scores, -np.inf, ", "np.copyto(scores, -50.0, "),
    ),
    planted(
        "mask: dropped for one token",
        "Wherever token 2 is in the batch, everything may be read.",
        Edit(
            "model.forward",
            'x, embedding_cache = ops.embedding(ids, params["embedding"])',
            'x, embedding_cache = ops.embedding(ids, params["embedding"])\n'
            "    if (ids == 2).any():\n"
            "        mask = np.ones((ids.shape[1],) * 2, dtype=bool)",
        ),
    ),
    # attention
    planted(
        "attention: no scale",
        "The scores are not divided by sqrt(dh).",
        Edit(
            "model.attention",
            "scores = q @ k.swapaxes(-1, -2) / math.sqrt(dh)",
            "scores = q @ k.swapaxes(-1, -2)",
        ),
    ),
    planted(
        "attention: no scale, both ways",
        "The scores are not divided by sqrt(dh), and neither is their gradient.",
        Edit(
            "model.attention",
            "scores = q @ k.swapaxes(-1, -2) / math.sqrt(dh)",
            "scores = q @ k.swapaxes(-1, -2)",
        ),
        Edit("model.attention_backward", "scaled = dscores / math.sqrt(q.shape[-1])", "scaled = dscores"),
    ),
    planted(
        "attention: scaled by dh",
        "The scores are divided by dh instead of its root.",
        Edit(
            "model.attention",
            "scores = q @ k.swapaxes(-1, -2) / math.sqrt(dh)",
            "scores = q @ k.swapaxes(-1, -2) / dh",
        ),
    ),
    planted(
        "attention: scaled by the whole width",
        "The scores are divided by sqrt(D), and so is their gradient.",
        Edit(
            "model.attention",
            "scores = q @ k.swapaxes(-1, -2) / math.sqrt(dh)",
            "scores = q @ k.swapaxes(-1, -2) / math.sqrt(H * dh)",
        ),
        Edit(
            "model.attention_backward",
            "scaled = dscores / math.sqrt(q.shape[-1])",
            "scaled = dscores / math.sqrt(q.shape[1] * q.shape[-1])",
        ),
    ),
    planted(
        "attention: scaled by the number of heads",
        "The scores are divided by H, which in the example happens to be sqrt(dh).",
        Edit(
            "model.attention",
            "scores = q @ k.swapaxes(-1, -2) / math.sqrt(dh)",
            "scores = q @ k.swapaxes(-1, -2) / H",
        ),
    ),
    planted(
        "attention: softmax over queries",
        "The weights of a key add up to one, not those of a query.",
        Edit("model.attention", "p = ops.softmax(scores)", "p = ops.softmax(scores, axis=-2)"),
    ),
    planted(
        "attention: softmax over heads",
        "The weights of the heads add up to one.",
        Edit(
            "model.attention",
            "np.copyto(scores, -np.inf, where=~mask)\n    p = ops.softmax(scores)",
            "np.copyto(scores, -1e9, where=~mask)\n    p = ops.softmax(scores, axis=1) * mask",
        ),
    ),
    planted(
        "attention: queries and keys exchanged",
        "Each key looks for queries.",
        Edit("model.attention", "scores = q @ k.swapaxes(-1, -2)", "scores = k @ q.swapaxes(-1, -2)"),
    ),
    planted(
        "attention: weights transposed",
        "Each value is handed to the queries that its own query looked at.",
        Edit(
            "model.attention",
            "return p @ v, AttentionCache(q, k, v, p)",
            "return p.swapaxes(-1, -2) @ v, AttentionCache(q, k, v, p)",
        ),
    ),
    planted(
        "attention: scores in single precision",
        "The scores are rounded to float32.",
        Edit(
            "model.attention",
            "p = ops.softmax(scores)",
            "p = ops.softmax(scores.astype(np.float32).astype(q.dtype))",
        ),
    ),
    planted(
        "attention backward: scale missing",
        "The gradient of the scores is not divided by sqrt(dh).",
        Edit("model.attention_backward", "scaled = dscores / math.sqrt(q.shape[-1])", "scaled = dscores"),
    ),
    planted(
        "attention backward: softmax missing",
        "The gradient of the weights is taken for that of the scores.",
        Edit("model.attention_backward", "dscores = ops.softmax_backward(dp, p)", "dscores = dp"),
    ),
    planted(
        "attention backward: dv not transposed",
        "The values' gradient comes from what a position reads instead of from who reads it.",
        Edit("model.attention_backward", "dv = p.swapaxes(-1, -2) @ do", "dv = p @ do"),
    ),
    planted(
        "attention backward: dk not transposed",
        "The keys' gradient comes from the scores of the query at the same place.",
        Edit(
            "model.attention_backward",
            "return scaled @ k, scaled.swapaxes(-1, -2) @ q, dv",
            "return scaled @ k, scaled @ q, dv",
        ),
    ),
    planted(
        "attention backward: dq and dk exchanged",
        "The two gradients have one shape and are returned in the wrong order.",
        Edit(
            "model.attention_backward",
            "return scaled @ k, scaled.swapaxes(-1, -2) @ q, dv",
            "return scaled.swapaxes(-1, -2) @ q, scaled @ k, dv",
        ),
    ),
    # SwiGLU
    planted(
        "swiglu: arms exchanged",
        "w3 makes the gate, and w1 what passes it.",
        Edit(
            "model.swiglu",
            "gate = silu(u)\n    hidden = gate * up",
            "gate = silu(up)\n    hidden = gate * u",
        ),
    ),
    planted(
        "swiglu: sigmoid gate",
        "The gate is sigmoid(u) instead of u * sigmoid(u).",
        Edit("model.swiglu", "gate = silu(u)\n    hidden", "gate = ops.sigmoid(u)\n    hidden"),
    ),
    planted(
        "swiglu: arms added",
        "The two arms are added instead of multiplied.",
        Edit("model.swiglu", "hidden = gate * up\n", "hidden = gate + up\n"),
    ),
    planted(
        "swiglu: ungated",
        "The second arm is computed and not used.",
        Edit("model.swiglu", "hidden = gate * up\n", "hidden = gate\n"),
    ),
    planted(
        "swiglu backward: one arm only",
        "Of the two gradients that meet at x only one arrives.",
        Edit("model.swiglu_backward", "return dx_u + dx_up, dw1, dw3, dw2", "return dx_up, dw1, dw3, dw2"),
    ),
    planted(
        "swiglu backward: other arm forgotten",
        "The gate's gradient is not multiplied by what passes the gate.",
        Edit("model.swiglu_backward", "silu_backward(dhidden * up, u)", "silu_backward(dhidden, u)"),
    ),
    planted(
        "swiglu backward: derivative at the output",
        "The derivative of silu is taken at silu(u) instead of u.",
        Edit("model.swiglu_backward", "silu_backward(dhidden * up, u)", "silu_backward(dhidden * up, gate)"),
    ),
    planted(
        "swiglu backward: dw1 and dw3 exchanged",
        "The two gradients have one shape and are returned in the wrong order.",
        Edit(
            "model.swiglu_backward",
            "return dx_u + dx_up, dw1, dw3, dw2",
            "return dx_u + dx_up, dw3, dw1, dw2",
        ),
    ),
    # the block
    planted(
        "block: post-norm",
        "The norm comes after each sum instead of before each branch.",
        Edit("model.block", "z, attn_norm_cache = rms_norm(x, w.attn_norm, eps=config.norm_eps)", "z = x"),
        Edit(
            "model.block",
            "r = x + linear(joined, w.wo)",
            "r, attn_norm_cache = rms_norm(x + linear(joined, w.wo), w.attn_norm, eps=config.norm_eps)",
        ),
        Edit("model.block", "n, ffn_norm_cache = rms_norm(r, w.ffn_norm, eps=config.norm_eps)", "n = r"),
        Edit(
            "model.block",
            "f, swiglu_cache = swiglu(n, w.w1, w.w3, w.w2)",
            "f, swiglu_cache = swiglu(n, w.w1, w.w3, w.w2)\n"
            "    y, ffn_norm_cache = rms_norm(r + f, w.ffn_norm, eps=config.norm_eps)",
        ),
        Edit("model.block", "return r + f, cache", "return y, cache"),
    ),
    planted(
        "block: norm skipped before attention",
        "Attention reads the residual stream as it is.",
        Edit(
            "model.block",
            "z, attn_norm_cache = rms_norm(x, w.attn_norm, eps=config.norm_eps)",
            "z, attn_norm_cache = x, rms_norm(x, w.attn_norm, eps=config.norm_eps)[1]",
        ),
    ),
    planted(
        "block: eps of the configuration ignored",
        "The norm uses its default eps whatever the configuration says.",
        Edit("model.block", "rms_norm(x, w.attn_norm, eps=config.norm_eps)", "rms_norm(x, w.attn_norm)"),
    ),
    planted(
        "block: residual missing around attention",
        "The stream is replaced by what attention gathered.",
        Edit("model.block", "r = x + linear(joined, w.wo)", "r = linear(joined, w.wo)"),
    ),
    planted(
        "block: residual missing around SwiGLU",
        "The stream is replaced by what the feed-forward made.",
        Edit("model.block", "return r + f, cache", "return f, cache"),
    ),
    planted(
        "block: residual from the normalised x",
        "The branch is added to z instead of x.",
        Edit("model.block", "r = x + linear(joined, w.wo)", "r = z + linear(joined, w.wo)"),
    ),
    planted(
        "block: branches side by side",
        "The feed-forward reads x instead of the stream after attention.",
        Edit(
            "model.block",
            "n, ffn_norm_cache = rms_norm(r, w.ffn_norm, eps=config.norm_eps)",
            "n, ffn_norm_cache = rms_norm(x, w.ffn_norm, eps=config.norm_eps)",
        ),
    ),
    planted(
        "block: output projection skipped",
        "The heads' results are added without wo.",
        Edit("model.block", "r = x + linear(joined, w.wo)", "r = x + joined"),
    ),
    planted(
        "block: added in place",
        "The branch is added into x, which the norm's cache still holds.",
        Edit("model.block", "r = x + linear(joined, w.wo)", "r = np.add(x, linear(joined, w.wo), out=x)"),
    ),
    planted(
        "block: weight transposed",
        "wq is used as (out, in), the way PyTorch stores it.",
        Edit(
            "model.block",
            "q = split_heads(linear(z, w.wq), config.n_heads)",
            "q = split_heads(linear(z, w.wq).T, config.n_heads)",
        ),
    ),
    planted(
        "block: keys from wq",
        "A copied line kept its weight.",
        Edit(
            "model.block",
            "k = split_heads(linear(z, w.wk), config.n_heads)",
            "k = split_heads(linear(z, w.wq), config.n_heads)",
        ),
    ),
    planted(
        "block: values from x",
        "Values are made from the stream instead of its normalised form.",
        Edit(
            "model.block",
            "v = split_heads(linear(z, w.wv), config.n_heads)",
            "v = split_heads(x @ w.wv, config.n_heads)",
        ),
    ),
    planted(
        "block backward: skip gradient missing around SwiGLU",
        "The gradient goes back through the branch only.",
        Edit("model.block_backward", "dr = dy + dr_branch", "dr = dr_branch"),
    ),
    planted(
        "block backward: skip gradient missing around attention",
        "The gradient goes back through the branch only.",
        Edit(
            "model.block_backward",
            "return dr + dx_branch, BlockWeights(",
            "return dx_branch, BlockWeights(",
        ),
    ),
    planted(
        "block backward: skip gradient from the wrong place",
        "Past the attention flows dy, without what the feed-forward sent back.",
        Edit(
            "model.block_backward",
            "return dr + dx_branch, BlockWeights(",
            "return dy + dx_branch, BlockWeights(",
        ),
    ),
    planted(
        "block backward: added in place",
        "The branch is added into the gradient that the caller passed.",
        Edit("model.block_backward", "dr = dy + dr_branch", "dr = np.add(dy, dr_branch, out=dy)"),
    ),
    planted(
        "block backward: values forgotten",
        "Of the three gradients that meet at z only two arrive.",
        Edit(
            "model.block_backward",
            "rms_norm_backward(dz_q + dz_k + dz_v, cache.attn_norm)",
            "rms_norm_backward(dz_q + dz_k, cache.attn_norm)",
        ),
    ),
    planted(
        "block backward: wo before the skip",
        "wo receives the gradient of y instead of that of r.",
        Edit(
            "model.block_backward",
            "djoined, dwo = linear_backward(dr, cache.joined, w.wo)",
            "djoined, dwo = linear_backward(dy, cache.joined, w.wo)",
        ),
    ),
    planted(
        "block backward: dwq and dwk exchanged",
        "The two gradients have one shape and are stored under each other's name.",
        Edit(
            "model.block_backward",
            "BlockWeights(dattn_norm, dwq, dwk, dwv, dwo,",
            "BlockWeights(dattn_norm, dwk, dwq, dwv, dwo,",
        ),
    ),
    planted(
        "block backward: split without swap",
        "The gradient of the joined heads is only reshaped.",
        Edit(
            "model.block_backward",
            "attention_backward(split_heads(djoined, config.n_heads), cache.attention)",
            "attention_backward(djoined.reshape(cache.q.shape), cache.attention)",
        ),
    ),
    # the whole model
    planted(
        "model: final norm skipped",
        "The logits are made from the stream as it is.",
        Edit(
            "model.forward",
            'final, final_norm_cache = rms_norm(x, params["final_norm"], eps=config.norm_eps)',
            'final, (_, final_norm_cache) = x, rms_norm(x, params["final_norm"], eps=config.norm_eps)',
        ),
    ),
    planted(
        "model: layer 0 in every layer",
        "Each layer uses the weights of the first.",
        Edit(
            "model.forward",
            "block(x, block_weights(params, l), config,",
            "block(x, block_weights(params, 0), config,",
        ),
    ),
    planted(
        "model backward: layers in forward order",
        "The gradient visits the first layer first.",
        Edit(
            "model.backward",
            "for block_cache in reversed(cache.blocks):",
            "for block_cache in cache.blocks:",
        ),
    ),
    planted(
        "model backward: gradients of the layers reversed",
        "They are collected from last to first and stored from first to last.",
        Edit("model.backward", "dblocks.insert(0, dweights)", "dblocks.append(dweights)"),
    ),
    planted(
        "model backward: final norm's gradient forgotten",
        "final_norm receives zeros, and so it never learns.",
        Edit(
            "model.backward",
            'grads | {"final_norm": dfinal_norm, "unembedding": dunembedding}',
            'grads | {"final_norm": 0 * dfinal_norm, "unembedding": dunembedding}',
        ),
    ),
    planted(
        "model backward: norms left out",
        "Only the matrices receive gradients.",
        Edit(
            "model.backward",
            '    return grads | {"final_norm": dfinal_norm, "unembedding": dunembedding}',
            '    return {key: g for key, g in grads.items() if g.ndim > 1} | {"unembedding": dunembedding}',
        ),
    ),
    # data
    planted(
        "targets: not shifted",
        "Each position is to predict its own input, which is easy.",
        Edit(
            "tiny.TARGET_IDS",
            "TARGET_IDS = _rows(word[1:] for word in WORDS)",
            "TARGET_IDS = _rows(word[:-1] for word in WORDS)",
        ),
    ),
    planted(
        "targets: shifted backwards",
        "Each position is to predict the token before it.",
        Edit(
            "tiny.TARGET_IDS",
            "TARGET_IDS = _rows(word[1:] for word in WORDS)",
            "TARGET_IDS = np.roll(INPUT_IDS, 1, axis=1)",
        ),
    ),
    planted(
        "targets: cross rows",
        "The batch is shifted as one long row, so a last target is the first input of the next row.",
        Edit(
            "tiny.TARGET_IDS",
            "TARGET_IDS = _rows(word[1:] for word in WORDS)",
            "TARGET_IDS = np.roll(INPUT_IDS, -1)",
        ),
    ),
    planted(
        "targets: last one wraps around",
        "Each row is shifted in itself, so its last target is its own first input.",
        Edit(
            "tiny.TARGET_IDS",
            "TARGET_IDS = _rows(word[1:] for word in WORDS)",
            "TARGET_IDS = np.roll(INPUT_IDS, -1, axis=1)",
        ),
    ),
    planted(
        "batch: targets not shifted",
        "Inputs and targets are the same tokens.",
        Edit("data._cut", "return spans[:, :-1], spans[:, 1:]", "return spans[:, :-1], spans[:, :-1]"),
    ),
    planted(
        "batch: inputs and targets exchanged",
        "The model learns to tell the token before.",
        Edit("data._cut", "return spans[:, :-1], spans[:, 1:]", "return spans[:, 1:], spans[:, :-1]"),
    ),
    planted(
        "batch: targets cross rows",
        "The batch is shifted as one long row.",
        Edit(
            "data._cut",
            "return spans[:, :-1], spans[:, 1:]",
            "return spans[:, :-1], np.roll(spans[:, :-1], -1)",
        ),
    ),
    planted(
        "batch: every other token",
        "Inputs skip a token, and targets lie between them.",
        Edit(
            "data._cut",
            "spans = ids[starts[:, np.newaxis] + np.arange(context + 1)]",
            "spans = ids[starts[:, np.newaxis] + 2 * np.arange(context + 1) % (context + 1)]",
        ),
    ),
)
# fmt: on
