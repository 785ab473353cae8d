"""Planted mistakes: small named changes to the source of this package, and how to run the package with one.

A mistake replaces text in one of FILES. The text has to occur there exactly once, so a mistake cannot drift
away from the code: when the code changes, planting it fails loudly until it is put right. `mutants.py` asks
the checks which of these they catch.
"""

import ast
import builtins
import difflib
import functools
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import NamedTuple

from labs.llm import data, model, ops, parameters, shapes, tiny

#: The files that mistakes are planted in. Each may import those before it.
FILES = ("ops", "parameters", "model", "tiny", "data")


class Library(NamedTuple):
    """The modules of this package, the real ones or a mutant's."""

    ops: ModuleType
    parameters: ModuleType
    model: ModuleType
    tiny: ModuleType
    data: ModuleType


#: The package as it is, without a mistake.
ORIGINAL = Library(ops, parameters, model, tiny, data)


class Mistake(NamedTuple):
    """A change to one source file."""

    name: str
    story: str  # what is wrong, in one sentence
    file: str  # one of FILES
    edits: tuple[tuple[str, str], ...]  # the right text and the wrong one that takes its place

    @property
    def where(self):
        """The function that the mistake is planted in, such as model.attention, or else the file."""
        line = source(self.file).partition(self.edits[0][0])[0].count("\n") + 1
        for statement in ast.parse(source(self.file)).body:
            if isinstance(statement, ast.FunctionDef) and statement.lineno <= line <= statement.end_lineno:
                return f"{self.file}.{statement.name}"
        return self.file

    @property
    def diff(self):
        """The changed lines as in a unified diff, each beginning with - or +."""
        lines = difflib.unified_diff(
            source(self.file).splitlines(), planted_source(self).splitlines(), n=0, lineterm=""
        )
        return [line for line in lines if line[0] in "-+" and line[:3] not in ("---", "+++")]


@functools.cache
def source(file):
    """Return the source text of one of FILES."""
    return Path(__file__).with_name(f"{file}.py").read_text(encoding="utf-8")


def planted_source(mistake):
    """Return the source text of the mistake's file with the mistake in it.

    Raises: ValueError unless the right text of every edit occurs exactly once.
    """
    text = source(mistake.file)
    for right, wrong in mistake.edits:
        count = text.count(right)
        if count != 1:
            raise ValueError(
                f"mistake {mistake.name!r} must find its text exactly once in {mistake.file}.py, found it "
                f"{count} times: copy the line from there again\n{right}"
            )
        text = text.replace(right, wrong)
    return text


def plant(mistake):
    """Return the Library with a mistake in it: fresh modules, the real ones are left alone."""
    fresh = {}
    for file in FILES:
        text = planted_source(mistake) if file == mistake.file else source(file)
        fresh[file] = _execute(file, text, fresh, f"{file}.py with mistake: {mistake.name}")
    return Library(**fresh)


def _execute(file, text, fresh, filename):
    """Run source text as the module labs.llm.{file}; what it imports of `fresh` comes from there."""
    package = SimpleNamespace(shapes=shapes, **fresh)

    def import_(name, *details):
        if name == "labs.llm":
            return package
        return fresh.get(name.removeprefix("labs.llm.")) or builtins.__import__(name, *details)

    module = ModuleType(f"labs.llm.{file}")
    module.__file__ = str(Path(__file__).with_name(f"{file}.py"))
    module.__builtins__ = {**vars(builtins), "__import__": import_}
    exec(compile(text, filename, "exec"), vars(module))
    return module


def _mistake(file, name, story, *texts):
    """Return a Mistake from right and wrong texts in turn."""
    return Mistake(name, story, file, tuple(zip(texts[::2], texts[1::2], strict=True)))


_in_ops = functools.partial(_mistake, "ops")
_in_parameters = functools.partial(_mistake, "parameters")
_in_model = functools.partial(_mistake, "model")
_in_tiny = functools.partial(_mistake, "tiny")
_in_data = functools.partial(_mistake, "data")

# fmt: off
MISTAKES = (
    # linear and embedding
    _in_ops(
        "linear: weight not transposed",
        "The gradient goes back through W instead of its transpose.",
        "return dy @ weight.T, dweight",
        "return dy @ weight, dweight",
    ),
    _in_ops(
        "linear: divided by B",
        "The weights' gradient is divided by the batch size, which the mean loss has already done.",
        "dweight = x.reshape(-1, D_in).T @ dy.reshape(-1, D_out)",
        "dweight = x.reshape(-1, D_in).T @ dy.reshape(-1, D_out) / len(x)",
    ),
    _in_ops(
        "linear: last row only",
        "Each row of the batch overwrites the weights' gradient of the row before it.",
        "dweight = x.reshape(-1, D_in).T @ dy.reshape(-1, D_out)",
        "dweight = x[-1].reshape(-1, D_in).T @ dy[-1].reshape(-1, D_out)",
    ),
    _in_ops(
        "linear: no dtype check",
        "Integers are multiplied as they are, and what comes out can have no gradient.",
        'x, weight = as_floats("x", x), as_floats("weight", weight)',
        "x, weight = np.asarray(x), np.asarray(weight)",
    ),
    _in_ops(
        "embedding: ids not checked",
        "An id of -1, often the sign for padding, quietly stands for the last token.",
        'ids = as_ids("ids", ids, table.shape[0])',
        "ids = np.asarray(ids)",
    ),
    _in_ops(
        "embedding: assigned",
        "Of a token that occurs several times only the last gradient is kept.",
        "np.add.at(dtable, ids, dx)",
        "dtable[ids] = dx",
    ),
    _in_ops(
        "embedding: buffered addition",
        "dtable[ids] += dx reads, adds and writes once per id, so a repeated token keeps one gradient.",
        "np.add.at(dtable, ids, dx)",
        "dtable[ids] += dx",
    ),
    _in_ops(
        "embedding: scaled forward only",
        "The vectors are multiplied by sqrt(D), as in the first Transformer, and their gradients are not.",
        "return table[ids], EmbeddingCache(ids, table)",
        "return table[ids] * table.shape[1] ** 0.5, EmbeddingCache(ids, table)",
    ),
    _in_ops(
        "embedding: scaled both ways",
        "The vectors are multiplied by sqrt(D), and so are their gradients: right, for another model.",
        "return table[ids], EmbeddingCache(ids, table)",
        "return table[ids] * table.shape[1] ** 0.5, EmbeddingCache(ids, table)",
        "np.add.at(dtable, ids, dx)",
        "np.add.at(dtable, ids, dx * table.shape[1] ** 0.5)",
    ),
    # RMSNorm
    _in_ops(
        "norm: over positions",
        "The mean square runs over T instead of over the features.",
        "mean_square = np.vecdot(x, x)[..., np.newaxis] / gain.size",
        "mean_square = np.mean(x**2, axis=-2, keepdims=True)",
    ),
    _in_ops(
        "norm: over everything",
        "One mean square serves for the whole batch.",
        "mean_square = np.vecdot(x, x)[..., np.newaxis] / gain.size",
        "mean_square = np.mean(x**2, keepdims=True)",
    ),
    _in_ops(
        "norm: sum of squares",
        "The squares are added up and not averaged.",
        "np.vecdot(x, x)[..., np.newaxis] / gain.size",
        "np.vecdot(x, x)[..., np.newaxis]",
    ),
    _in_ops(
        "norm: mean subtracted",
        "The mean is subtracted first: that is LayerNorm.",
        'x, gain = as_floats("x", x), as_floats("gain", gain)',
        'x, gain = as_floats("x", x) - np.mean(x, axis=-1, keepdims=True), as_floats("gain", gain)',
    ),
    _in_ops(
        "norm: no square root",
        "The vector is divided by its mean square instead of the root of it.",
        "inv_rms = 1 / np.sqrt(mean_square + eps)",
        "inv_rms = 1 / (mean_square + eps)",
    ),
    _in_ops(
        "norm: eps outside the root",
        "eps is added to the root instead of to the mean square.",
        "inv_rms = 1 / np.sqrt(mean_square + eps)",
        "inv_rms = 1 / (np.sqrt(mean_square) + eps)",
    ),
    _in_ops(
        "norm: no eps",
        "Nothing guards against division by zero.",
        "inv_rms = 1 / np.sqrt(mean_square + eps)",
        "inv_rms = 1 / np.sqrt(mean_square)",
    ),
    _in_ops(
        "norm: gain starts at zero",
        "The vector is multiplied by 1 + gain, while the gains are stored around one.",
        "return gain * (x * inv_rms), RMSNormCache",
        "return (1 + gain) * (x * inv_rms), RMSNormCache",
    ),
    _in_ops(
        "norm: squared in half precision",
        "The mean square is computed in float16, where the square of 300 is infinite.",
        "mean_square = np.vecdot(x, x)",
        "mean_square = np.vecdot(x, x, dtype=np.float16)",
    ),
    _in_ops(
        "norm backward: projection missing",
        "The root mean square is treated as a constant.",
        "return inv_rms * (dunit - unit * mean), dgain",
        "return inv_rms * dunit, dgain",
    ),
    _in_ops(
        "norm backward: gain forgotten in the dot product",
        "The projection uses dy where it should use dy * gain.",
        "mean = np.vecdot(dunit, unit)",
        "mean = np.vecdot(dy, unit)",
    ),
    _in_ops(
        "norm backward: gain forgotten",
        "The gradient passes the gain as if it were one.",
        "dunit = dy * gain",
        "dunit = dy",
    ),
    _in_ops(
        "norm backward: projection not averaged",
        "The dot product in the projection is not divided by D.",
        "mean = np.vecdot(dunit, unit)[..., np.newaxis] / gain.size",
        "mean = np.vecdot(dunit, unit)[..., np.newaxis]",
    ),
    _in_ops(
        "norm backward: gain's gradient from x",
        "The gain's gradient multiplies dy by x instead of the normalised x.",
        "dgain = (dy * unit)",
        "dgain = (dy * x)",
    ),
    _in_ops(
        "norm backward: gain's gradient averaged",
        "The gain's gradient is averaged over the positions that share it, not added up.",
        "dgain = (dy * unit).reshape(-1, gain.size).sum(axis=0)",
        "dgain = (dy * unit).reshape(-1, gain.size).mean(axis=0)",
    ),
    _in_ops(
        "norm backward: writes into its cache",
        "x is normalised in place, so a second backward pass starts from other numbers.",
        "unit = x * inv_rms  # (..., D), recomputed instead of stored",
        "unit = np.multiply(x, inv_rms, out=x)",
    ),
    # softmax
    _in_ops(
        "softmax: maximum not subtracted",
        "exp(x) is taken as it is, and overflows from 710 on.",
        "return x - largest",
        "return x.copy()",
    ),
    _in_ops(
        "softmax: one maximum for all",
        "The largest of all scores is subtracted everywhere: it cancels, but the future rounds the past.",
        "largest = x.max(axis=axis, keepdims=True)",
        "largest = x.max(keepdims=True)",
    ),
    _in_ops(
        "softmax: one sum for all",
        "The weights of all rows together add up to one.",
        "p /= p.sum(axis=axis, keepdims=True)",
        "p /= p.sum(keepdims=True)",
    ),
    _in_ops(
        "softmax: in place",
        "The maximum is subtracted from the caller's array.",
        "return x - largest",
        "x -= largest\n    return x",
    ),
    _in_ops(
        "softmax backward: row sum missing",
        "Each weight is treated as if the others did not depend on its score.",
        "return p * (dp - np.expand_dims(np.vecdot(p, dp, axis=axis), axis))",
        "return p * dp",
    ),
    _in_ops(
        "softmax backward: row sum unweighted",
        "The plain mean of dp is subtracted instead of the mean weighted by p.",
        "np.expand_dims(np.vecdot(p, dp, axis=axis), axis)",
        "np.mean(dp, axis=axis, keepdims=True)",
    ),
    _in_ops(
        "softmax backward: diagonal only",
        "Only dp_i/dx_i = p_i (1 - p_i) is kept of the Jacobian.",
        "return p * (dp - np.expand_dims(np.vecdot(p, dp, axis=axis), axis))",
        "return p * (1 - p) * dp",
    ),
    _in_ops(
        "softmax backward: sum over queries",
        "The sum runs along the queries instead of the keys.",
        "np.expand_dims(np.vecdot(p, dp, axis=axis), axis)",
        "np.sum(p * dp, axis=0 if p.ndim == 1 else -2, keepdims=True)",
    ),
    # SiLU
    _in_ops(
        "silu: sigmoid only",
        "The factor x is forgotten.",
        "return x * sigmoid(x)",
        "return sigmoid(x)",
    ),
    _in_ops(
        "silu: relu",
        "Negative numbers are cut off instead of held back.",
        "return x * sigmoid(x)",
        "return np.maximum(x, 0)",
    ),
    _in_ops(
        "silu: gelu, both ways",
        "x * sigmoid(1.702 x), an approximation of GELU, with its own right derivative.",
        "return x * sigmoid(x)",
        "return x * sigmoid(1.702 * x)",
        "    s = sigmoid(x)\n    return dy * (s * (1 + x * (1 - s)))",
        "    s = sigmoid(1.702 * x)\n    return dy * (s * (1 + 1.702 * x * (1 - s)))",
    ),
    _in_ops(
        "silu: overflows",
        "sigmoid is written as exp(x) / (1 + exp(x)), infinity over infinity for large x.",
        "return 1 / (1 + np.exp(-x))",
        "return np.exp(x) / (1 + np.exp(x))",
    ),
    _in_ops(
        "silu backward: sigmoid as derivative",
        "The derivative of the factor sigmoid(x) is forgotten.",
        "return dy * (s * (1 + x * (1 - s)))",
        "return dy * s",
    ),
    _in_ops(
        "silu backward: derivative of sigmoid",
        "The factor x is forgotten in the derivative.",
        "return dy * (s * (1 + x * (1 - s)))",
        "return dy * (s * (1 - s))",
    ),
    # cross-entropy
    _in_ops(
        "loss: sum instead of mean",
        "The surprises are added up, and only the gradient is that of their mean.",
        "return -log_p[one_hot].mean(), CrossEntropyCache",
        "return -log_p[one_hot].sum(), CrossEntropyCache",
    ),
    _in_ops(
        "loss: bits",
        "The loss is in bits, its gradient in nats.",
        "return -log_p[one_hot].mean(), CrossEntropyCache",
        "return -log_p[one_hot].mean() / np.log(2), CrossEntropyCache",
    ),
    _in_ops(
        "loss: small number inside the logarithm",
        "log(p + 1e-8) avoids log(0), and quietly changes every loss.",
        "return -log_p[one_hot].mean(), CrossEntropyCache",
        "return -np.log(np.exp(log_p[one_hot]) + 1e-8).mean(), CrossEntropyCache",
    ),
    _in_ops(
        "loss backward: divided by B",
        "The gradient is divided by the number of rows instead of the number of targets.",
        "positions = p.size // p.shape[-1]",
        "positions = len(p)",
    ),
    _in_ops(
        "loss backward: two axes counted",
        "The number of targets is taken for B * T, the first two axes, whatever the logits have.",
        "positions = p.size // p.shape[-1]",
        "positions = np.prod(p.shape[:2])",
    ),
    _in_ops(
        "loss backward: outer axes counted",
        "The number of targets is taken for that of the first axis times that of the last but one.",
        "positions = p.size // p.shape[-1]",
        "positions = len(p) * p.shape[max(-2, -p.ndim)]",
    ),
    _in_ops(
        "loss backward: target not subtracted",
        "The gradient is p where it should be p - one_hot.",
        "return (p - one_hot) * (dloss / positions)",
        "return p * (dloss / positions)",
    ),
    _in_ops(
        "loss backward: sign",
        "Every gradient of the model points uphill.",
        "return (p - one_hot) * (dloss / positions)",
        "return (one_hot - p) * (dloss / positions)",
    ),
    _in_ops(
        "loss backward: upstream gradient ignored",
        "dloss is taken for one, which it is until somebody weights the loss.",
        "return (p - one_hot) * (dloss / positions)",
        "return (p - one_hot) * (1 / positions)",
    ),
    # initial parameters
    _in_parameters(
        "init: layers share their matrices",
        "Every layer holds the arrays of layer 0.",
        "params[key] = (scale * rng.standard_normal(shape)).astype(dtype)",
        'params[key] = params.get(f"blocks.0.{name}", (scale * rng.standard_normal(shape)).astype(dtype))',
    ),
    _in_parameters(
        "init: norms share their gain",
        "All norms hold one array.",
        "params[key] = np.ones(shape, dtype)",
        'params[key] = params.get("blocks.0.attn_norm", np.ones(shape, dtype))',
    ),
    _in_parameters(
        "init: every matrix from the same seed",
        "The generator starts anew for each matrix, so wq, wk and wv are equal.",
        "(scale * rng.standard_normal(shape))",
        "(scale * np.random.default_rng(seed).standard_normal(shape))",
    ),
    _in_parameters(
        "init: loud unembedding",
        "The logits start out large, and the first loss far above log V.",
        'if name == "unembedding":\n            scale /= 10',
        'if name == "unembedding":\n            scale *= 10',
    ),
    # heads
    _in_model(
        "split: without swap",
        "A plain reshape to (B, H, T, dh) has the right shape and mixes positions into heads.",
        "x.reshape(B, T, n_heads, D // n_heads).swapaxes(1, 2)",
        "x.reshape(B, n_heads, T, D // n_heads)",
    ),
    _in_model(
        "split: batch and head swapped",
        "The heads come before the batch.",
        "x.reshape(B, T, n_heads, D // n_heads).swapaxes(1, 2)",
        "x.reshape(B, T, n_heads, D // n_heads).transpose(2, 0, 1, 3)",
    ),
    _in_model(
        "split: features dealt out in turn",
        "Head h takes every H-th feature instead of dh neighbours.",
        "x.reshape(B, T, n_heads, D // n_heads).swapaxes(1, 2)",
        "x.reshape(B, T, D // n_heads, n_heads).transpose(0, 3, 1, 2)",
    ),
    _in_model(
        "merge: without swap",
        "A plain reshape to (B, T, D) puts positions of one head side by side.",
        "x.swapaxes(1, 2).reshape(B, T, H * dh)",
        "x.reshape(B, T, H * dh)",
    ),
    _in_model(
        "merge: features dealt out in turn",
        "The features of the heads alternate instead of standing head by head.",
        "x.swapaxes(1, 2).reshape(B, T, H * dh)",
        "x.transpose(0, 2, 3, 1).reshape(B, T, H * dh)",
    ),
    # RoPE
    _in_model(
        "rope: half-split pairs",
        "Feature r is paired with r + dh/2: a good convention, but not the one of these weights.",
        "even, odd = x[..., 0::2], x[..., 1::2]",
        "even, odd = x[..., : dh // 2], x[..., dh // 2 :]",
        "y[..., 0::2] = even",
        "y[..., : dh // 2] = even",
        "y[..., 1::2] = even",
        "y[..., dh // 2 :] = even",
    ),
    _in_model(
        "rope: mixed pairs",
        "Pairs are read half-split and written interleaved.",
        "even, odd = x[..., 0::2], x[..., 1::2]",
        "even, odd = x[..., : dh // 2], x[..., dh // 2 :]",
    ),
    _in_model(
        "rope: sign",
        "One sine has the wrong sign: a stretch instead of a rotation.",
        "y[..., 0::2] = even * cos - odd * sin",
        "y[..., 0::2] = even * cos + odd * sin",
    ),
    _in_model(
        "rope: wrong direction",
        "Everything is rotated backwards, and back forwards.",
        "np.outer(-positions if inverse else positions, frequencies)",
        "np.outer(positions if inverse else -positions, frequencies)",
    ),
    _in_model(
        "rope: exponent without its 2",
        "The frequencies are base ** (-r / dh), those of a head twice as wide.",
        "base ** (-np.arange(0, dh, 2) / dh)",
        "base ** (-np.arange(0, dh, 2) / (2 * dh))",
    ),
    _in_model(
        "rope: frequencies in single precision",
        "The frequencies are rounded to float32, and the angles of late positions with them.",
        "frequencies = base ** (-np.arange(0, dh, 2) / dh)",
        "frequencies = (base ** (-np.arange(0, dh, 2) / dh)).astype(np.float32)",
    ),
    _in_model(
        "rope: frequencies from D",
        "The whole width is rotated before it is split into heads.",
        "q, k = rope(q, positions, base=config.rope_base), rope(k, positions, base=config.rope_base)",
        "q, k = (\n"
        "            split_heads(rope(merge_heads(each), positions, base=config.rope_base), config.n_heads)\n"
        "            for each in (q, k)\n"
        "        )",
    ),
    _in_model(
        "rope: degrees",
        "The angles are taken for degrees.",
        "angles = np.outer(-positions if inverse else positions, frequencies)",
        "angles = np.deg2rad(np.outer(-positions if inverse else positions, frequencies))",
    ),
    _in_model(
        "rope: positions from one",
        "Positions are counted from one, for queries and keys alike.",
        "positions = shapes.as_positions(positions, T)",
        "positions = shapes.as_positions(positions, T) + 1",
    ),
    _in_model(
        "rope: keys one position late",
        "Keys are rotated by one position more than queries.",
        "rope(q, positions, base=config.rope_base), rope(k, positions, base=config.rope_base)",
        "rope(q, positions, base=config.rope_base), rope(\n"
        "            k, shapes.as_positions(positions, x.shape[1]) + 1, base=config.rope_base\n"
        "        )",
    ),
    _in_model(
        "rope: queries only",
        "Keys are not rotated.",
        "q, k = rope(q, positions, base=config.rope_base), rope(k, positions, base=config.rope_base)",
        "q = rope(q, positions, base=config.rope_base)",
    ),
    _in_model(
        "rope: keys only",
        "Queries are not rotated.",
        "q, k = rope(q, positions, base=config.rope_base), rope(k, positions, base=config.rope_base)",
        "k = rope(k, positions, base=config.rope_base)",
    ),
    _in_model(
        "rope: values too",
        "Values are rotated like queries and keys, and bring their absolute position along.",
        "o, attention_cache = attention(q, k, v, mask)",
        "v = rope(v, positions, base=config.rope_base)\n    o, attention_cache = attention(q, k, v, mask)",
    ),
    _in_model(
        "rope: missing, both ways",
        "Nothing is rotated, forward or backward.",
        "    if rotate:\n",
        "    if False:\n",
        "    if cache.rotate:\n",
        "    if False:\n",
    ),
    _in_model(
        "rope: given positions ignored",
        "Queries and keys are always rotated as positions 0 to T-1, which decoding step by step will notice.",
        "q, k = rope(q, positions, base=config.rope_base), rope(k, positions, base=config.rope_base)",
        "q, k = rope(q, base=config.rope_base), rope(k, base=config.rope_base)",
    ),
    _in_model(
        "rope: given positions in the first layer only",
        "All layers but the first count from zero, whatever positions the caller gives.",
        "positions=positions, rotate=rotate)",
        "positions=None if l else positions, rotate=rotate)",
    ),
    _in_model(
        "rope: rotate=False ignored",
        "Queries and keys are rotated whatever the caller says, forward and backward.",
        "positions=positions, rotate=rotate)",
        "positions=positions)",
    ),
    _in_model(
        "rope: base of the configuration ignored",
        "The default base is used both ways whatever the configuration says.",
        "q, k = rope(q, positions, base=config.rope_base), rope(k, positions, base=config.rope_base)",
        "q, k = rope(q, positions), rope(k, positions)",
        "dq = rope(dq, cache.positions, base=config.rope_base, inverse=True)",
        "dq = rope(dq, cache.positions, inverse=True)",
        "dk = rope(dk, cache.positions, base=config.rope_base, inverse=True)",
        "dk = rope(dk, cache.positions, inverse=True)",
    ),
    _in_model(
        "rope backward: rotated forwards",
        "The gradient is rotated as the forward pass rotates, not back.",
        "np.outer(-positions if inverse else positions, frequencies)",
        "np.outer(positions, frequencies)",
    ),
    _in_model(
        "rope backward: forgotten",
        "The gradients of queries and keys are not rotated back.",
        "    if cache.rotate:\n",
        "    if False:\n",
    ),
    _in_model(
        "rope backward: rotate=False ignored",
        "The gradients of queries and keys are rotated back even where nothing was rotated.",
        "    if cache.rotate:\n",
        "    if True:\n",
    ),
    _in_model(
        "rope backward: given positions ignored",
        "The gradients are rotated back from positions 0 to T-1, whatever positions were given.",
        "dq = rope(dq, cache.positions, base=config.rope_base, inverse=True)",
        "dq = rope(dq, base=config.rope_base, inverse=True)",
        "dk = rope(dk, cache.positions, base=config.rope_base, inverse=True)",
        "dk = rope(dk, base=config.rope_base, inverse=True)",
    ),
    # the mask
    _in_model(
        "mask: shifted",
        "Every position may read one token ahead, the very one it has to predict.",
        "np.tri(t_query, t_key, k=t_key - t_query, dtype=bool)",
        "np.tri(t_query, t_key, k=t_key - t_query + 1, dtype=bool)",
    ),
    _in_model(
        "mask: strict",
        "No position may read itself, and the first nothing at all.",
        "np.tri(t_query, t_key, k=t_key - t_query, dtype=bool)",
        "np.tri(t_query, t_key, k=t_key - t_query - 1, dtype=bool)",
    ),
    _in_model(
        "mask: inverted",
        "What may be read is forbidden, and the other way round.",
        "return np.tri(t_query, t_key, k=t_key - t_query, dtype=bool)",
        "return ~np.tri(t_query, t_key, k=t_key - t_query, dtype=bool)",
    ),
    _in_model(
        "mask: upper triangle",
        "Every position reads itself and what follows.",
        "return np.tri(t_query, t_key, k=t_key - t_query, dtype=bool)",
        "return np.tri(t_key, t_query, k=t_query - t_key, dtype=bool).T",
    ),
    _in_model(
        "mask: absent",
        "Everything may be read.",
        "return np.tri(t_query, t_key, k=t_key - t_query, dtype=bool)",
        "return np.ones((t_query, t_key), dtype=bool)",
    ),
    _in_model(
        "mask: a window",
        "Only the last three positions are within reach.",
        "return np.tri(t_query, t_key, k=t_key - t_query, dtype=bool)",
        "return np.tri(t_query, t_key, k=t_key - t_query, dtype=bool) & ~np.tri(\n"
        "        t_query, t_key, k=t_key - t_query - 3, dtype=bool\n"
        "    )",
    ),
    _in_model(
        "mask: queries first",
        "With more keys than queries, the queries are taken for the first positions instead of the last.",
        "np.tri(t_query, t_key, k=t_key - t_query, dtype=bool)",
        "np.tri(t_query, t_key, dtype=bool)",
    ),
    _in_model(
        "mask: first layer only",
        "All layers but the first may read everything.",
        "x, cache = block(x, block_weights(params, l), config, mask=mask, positions",
        "every = np.ones((ids.shape[1],) * 2, dtype=bool) if l else mask\n"
        "        x, cache = block(x, block_weights(params, l), config, mask=every, positions",
    ),
    _in_model(
        "mask: given mask ignored",
        "The model is always causal, whatever mask the caller gives.",
        "config, mask=mask, positions",
        "config, mask=None, positions",
    ),
    _in_model(
        "mask: given mask in the first layer only",
        "All layers but the first are causal, whatever mask the caller gives.",
        "config, mask=mask, positions",
        "config, mask=None if l else mask, positions",
    ),
    _in_model(
        "mask: after softmax",
        "The weights of forbidden keys are set to zero after softmax, so the sum still knows the future.",
        "p = ops.softmax(np.where(mask, scores, -np.inf))",
        "p = ops.softmax(scores) * mask",
    ),
    _in_model(
        "mask: after softmax, normalised again",
        "Right in exact arithmetic; but the maximum is taken over the future too, and rounds the past by it.",
        "p = ops.softmax(np.where(mask, scores, -np.inf))",
        "p = ops.softmax(scores) * mask\n    p /= p.sum(axis=-1, keepdims=True)",
    ),
    _in_model(
        "mask: -10 instead of -inf",
        "A forbidden key keeps a weight of about exp(-10).",
        "p = ops.softmax(np.where(mask, scores, -np.inf))",
        "p = ops.softmax(np.where(mask, scores, -10.0))",
    ),
    _in_model(
        "padding mask: on the queries",
        "The padding may not read, where it may not be read.",
        "return keep[:, np.newaxis, np.newaxis, :]",
        "return keep[:, np.newaxis, :, np.newaxis]",
    ),
    _in_model(
        "mask: -50 instead of -inf",
        "A forbidden key keeps a weight of about exp(-50), too little to move a bit until scores are large.",
        "p = ops.softmax(np.where(mask, scores, -np.inf))",
        "p = ops.softmax(np.where(mask, scores, -50.0))",
    ),
    _in_model(
        "mask: dropped for one token",
        "Wherever token 2 is in the batch, everything may be read.",
        'x, embedding_cache = ops.embedding(ids, params["embedding"])',
        'x, embedding_cache = ops.embedding(ids, params["embedding"])\n'
        "    if (ids == 2).any():\n"
        "        mask = np.ones((ids.shape[1],) * 2, dtype=bool)",
    ),
    # attention
    _in_model(
        "attention: no scale",
        "The scores are not divided by sqrt(dh).",
        "scores = q @ k.swapaxes(-1, -2) / math.sqrt(dh)",
        "scores = q @ k.swapaxes(-1, -2)",
    ),
    _in_model(
        "attention: no scale, both ways",
        "The scores are not divided by sqrt(dh), and neither is their gradient.",
        "scores = q @ k.swapaxes(-1, -2) / math.sqrt(dh)",
        "scores = q @ k.swapaxes(-1, -2)",
        "scaled = dscores / math.sqrt(q.shape[-1])",
        "scaled = dscores",
    ),
    _in_model(
        "attention: scaled by dh",
        "The scores are divided by dh instead of its root.",
        "scores = q @ k.swapaxes(-1, -2) / math.sqrt(dh)",
        "scores = q @ k.swapaxes(-1, -2) / dh",
    ),
    _in_model(
        "attention: scaled by the whole width",
        "The scores are divided by sqrt(D), and so is their gradient.",
        "scores = q @ k.swapaxes(-1, -2) / math.sqrt(dh)",
        "scores = q @ k.swapaxes(-1, -2) / math.sqrt(H * dh)",
        "scaled = dscores / math.sqrt(q.shape[-1])",
        "scaled = dscores / math.sqrt(q.shape[1] * q.shape[-1])",
    ),
    _in_model(
        "attention: scaled by the number of heads",
        "The scores are divided by H, which in the example happens to be sqrt(dh).",
        "scores = q @ k.swapaxes(-1, -2) / math.sqrt(dh)",
        "scores = q @ k.swapaxes(-1, -2) / H",
    ),
    _in_model(
        "attention: softmax over queries",
        "The weights of a key add up to one, not those of a query.",
        "p = ops.softmax(np.where(mask, scores, -np.inf))",
        "p = ops.softmax(np.where(mask, scores, -np.inf), axis=-2)",
    ),
    _in_model(
        "attention: softmax over heads",
        "The weights of the heads add up to one.",
        "p = ops.softmax(np.where(mask, scores, -np.inf))",
        "p = ops.softmax(np.where(mask, scores, -1e9), axis=1) * mask",
    ),
    _in_model(
        "attention: queries and keys exchanged",
        "Each key looks for queries.",
        "scores = q @ k.swapaxes(-1, -2)",
        "scores = k @ q.swapaxes(-1, -2)",
    ),
    _in_model(
        "attention: weights transposed",
        "Each value is handed to the queries that its own query looked at.",
        "return p @ v, AttentionCache(q, k, v, p)",
        "return p.swapaxes(-1, -2) @ v, AttentionCache(q, k, v, p)",
    ),
    _in_model(
        "attention: scores in single precision",
        "The scores are rounded to float32.",
        "p = ops.softmax(np.where(mask, scores, -np.inf))",
        "p = ops.softmax(np.where(mask, scores, -np.inf).astype(np.float32)).astype(q.dtype)",
    ),
    _in_model(
        "attention backward: scale missing",
        "The gradient of the scores is not divided by sqrt(dh).",
        "scaled = dscores / math.sqrt(q.shape[-1])",
        "scaled = dscores",
    ),
    _in_model(
        "attention backward: softmax missing",
        "The gradient of the weights is taken for that of the scores.",
        "dscores = ops.softmax_backward(dp, p)",
        "dscores = dp",
    ),
    _in_model(
        "attention backward: dv not transposed",
        "The values' gradient comes from what a position reads instead of from who reads it.",
        "dv = p.swapaxes(-1, -2) @ do",
        "dv = p @ do",
    ),
    _in_model(
        "attention backward: dk not transposed",
        "The keys' gradient comes from the scores of the query at the same place.",
        "return scaled @ k, scaled.swapaxes(-1, -2) @ q, dv",
        "return scaled @ k, scaled @ q, dv",
    ),
    _in_model(
        "attention backward: dq and dk exchanged",
        "The two gradients have one shape and are returned in the wrong order.",
        "return scaled @ k, scaled.swapaxes(-1, -2) @ q, dv",
        "return scaled.swapaxes(-1, -2) @ q, scaled @ k, dv",
    ),
    # SwiGLU
    _in_model(
        "swiglu: arms exchanged",
        "w3 makes the gate, and w1 what passes it.",
        "gate = silu(u)\n    hidden = gate * up",
        "gate = silu(up)\n    hidden = gate * u",
    ),
    _in_model(
        "swiglu: sigmoid gate",
        "The gate is sigmoid(u) instead of u * sigmoid(u).",
        "gate = silu(u)\n    hidden",
        "gate = ops.sigmoid(u)\n    hidden",
    ),
    _in_model(
        "swiglu: arms added",
        "The two arms are added instead of multiplied.",
        "hidden = gate * up\n",
        "hidden = gate + up\n",
    ),
    _in_model(
        "swiglu: ungated",
        "The second arm is computed and not used.",
        "hidden = gate * up\n",
        "hidden = gate\n",
    ),
    _in_model(
        "swiglu backward: one arm only",
        "Of the two gradients that meet at x only one arrives.",
        "return dx_u + dx_up, dw1, dw3, dw2",
        "return dx_up, dw1, dw3, dw2",
    ),
    _in_model(
        "swiglu backward: other arm forgotten",
        "The gate's gradient is not multiplied by what passes the gate.",
        "silu_backward(dhidden * up, u)",
        "silu_backward(dhidden, u)",
    ),
    _in_model(
        "swiglu backward: derivative at the output",
        "The derivative of silu is taken at silu(u) instead of u.",
        "silu_backward(dhidden * up, u)",
        "silu_backward(dhidden * up, gate)",
    ),
    _in_model(
        "swiglu backward: dw1 and dw3 exchanged",
        "The two gradients have one shape and are returned in the wrong order.",
        "return dx_u + dx_up, dw1, dw3, dw2",
        "return dx_u + dx_up, dw3, dw1, dw2",
    ),
    # the block
    _in_model(
        "block: post-norm",
        "The norm comes after each sum instead of before each branch.",
        "z, attn_norm_cache = rms_norm(x, w.attn_norm, eps=config.norm_eps)",
        "z = x",
        "r = x + joined @ w.wo",
        "r, attn_norm_cache = rms_norm(x + joined @ w.wo, w.attn_norm, eps=config.norm_eps)",
        "n, ffn_norm_cache = rms_norm(r, w.ffn_norm, eps=config.norm_eps)",
        "n = r",
        "f, swiglu_cache = swiglu(n, w.w1, w.w3, w.w2)",
        "f, swiglu_cache = swiglu(n, w.w1, w.w3, w.w2)\n"
        "    y, ffn_norm_cache = rms_norm(r + f, w.ffn_norm, eps=config.norm_eps)",
        "return r + f, cache",
        "return y, cache",
    ),
    _in_model(
        "block: norm skipped before attention",
        "Attention reads the residual stream as it is.",
        "z, attn_norm_cache = rms_norm(x, w.attn_norm, eps=config.norm_eps)",
        "z, attn_norm_cache = x, rms_norm(x, w.attn_norm, eps=config.norm_eps)[1]",
    ),
    _in_model(
        "block: eps of the configuration ignored",
        "The norm uses its default eps whatever the configuration says.",
        "rms_norm(x, w.attn_norm, eps=config.norm_eps)",
        "rms_norm(x, w.attn_norm)",
    ),
    _in_model(
        "block: residual missing around attention",
        "The stream is replaced by what attention gathered.",
        "r = x + joined @ w.wo",
        "r = joined @ w.wo",
    ),
    _in_model(
        "block: residual missing around SwiGLU",
        "The stream is replaced by what the feed-forward made.",
        "return r + f, cache",
        "return f, cache",
    ),
    _in_model(
        "block: residual from the normalised x",
        "The branch is added to z instead of x.",
        "r = x + joined @ w.wo",
        "r = z + joined @ w.wo",
    ),
    _in_model(
        "block: branches side by side",
        "The feed-forward reads x instead of the stream after attention.",
        "n, ffn_norm_cache = rms_norm(r, w.ffn_norm, eps=config.norm_eps)",
        "n, ffn_norm_cache = rms_norm(x, w.ffn_norm, eps=config.norm_eps)",
    ),
    _in_model(
        "block: output projection skipped",
        "The heads' results are added without wo.",
        "r = x + joined @ w.wo",
        "r = x + joined",
    ),
    _in_model(
        "block: added in place",
        "The branch is added into x, which the norm's cache still holds.",
        "r = x + joined @ w.wo",
        "r = np.add(x, joined @ w.wo, out=x)",
    ),
    _in_model(
        "block: weight transposed",
        "wq is used as (out, in), the way PyTorch stores it.",
        "q = split_heads(z @ w.wq, config.n_heads)",
        "q = split_heads(z @ w.wq.T, config.n_heads)",
    ),
    _in_model(
        "block: keys from wq",
        "A copied line kept its weight.",
        "k = split_heads(z @ w.wk, config.n_heads)",
        "k = split_heads(z @ w.wq, config.n_heads)",
    ),
    _in_model(
        "block: values from x",
        "Values are made from the stream instead of its normalised form.",
        "v = split_heads(z @ w.wv, config.n_heads)",
        "v = split_heads(x @ w.wv, config.n_heads)",
    ),
    _in_model(
        "block backward: skip gradient missing around SwiGLU",
        "The gradient goes back through the branch only.",
        "dr = dy + dr_branch",
        "dr = dr_branch",
    ),
    _in_model(
        "block backward: skip gradient missing around attention",
        "The gradient goes back through the branch only.",
        "return dr + dx_branch, BlockWeights(",
        "return dx_branch, BlockWeights(",
    ),
    _in_model(
        "block backward: skip gradient from the wrong place",
        "Past the attention flows dy, without what the feed-forward sent back.",
        "return dr + dx_branch, BlockWeights(",
        "return dy + dx_branch, BlockWeights(",
    ),
    _in_model(
        "block backward: added in place",
        "The branch is added into the gradient that the caller passed.",
        "dr = dy + dr_branch",
        "dr = np.add(dy, dr_branch, out=dy)",
    ),
    _in_model(
        "block backward: values forgotten",
        "Of the three gradients that meet at z only two arrive.",
        "rms_norm_backward(dz_q + dz_k + dz_v, cache.attn_norm)",
        "rms_norm_backward(dz_q + dz_k, cache.attn_norm)",
    ),
    _in_model(
        "block backward: wo before the skip",
        "wo receives the gradient of y instead of that of r.",
        "djoined, dwo = linear_backward(dr, LinearCache(cache.joined, w.wo))",
        "djoined, dwo = linear_backward(dy, LinearCache(cache.joined, w.wo))",
    ),
    _in_model(
        "block backward: dwq and dwk exchanged",
        "The two gradients have one shape and are stored under each other's name.",
        "BlockWeights(dattn_norm, dwq, dwk, dwv, dwo,",
        "BlockWeights(dattn_norm, dwk, dwq, dwv, dwo,",
    ),
    _in_model(
        "block backward: split without swap",
        "The gradient of the joined heads is only reshaped.",
        "attention_backward(split_heads(djoined, config.n_heads), cache.attention)",
        "attention_backward(djoined.reshape(cache.q.shape), cache.attention)",
    ),
    # the whole model
    _in_model(
        "model: final norm skipped",
        "The logits are made from the stream as it is.",
        'x, final_norm_cache = rms_norm(x, params["final_norm"], eps=config.norm_eps)',
        '_, final_norm_cache = rms_norm(x, params["final_norm"], eps=config.norm_eps)',
    ),
    _in_model(
        "model: layer 0 in every layer",
        "Each layer uses the weights of the first.",
        "block(x, block_weights(params, l), config,",
        "block(x, block_weights(params, 0), config,",
    ),
    _in_model(
        "model backward: layers in forward order",
        "The gradient visits the first layer first.",
        "for block_cache in reversed(cache.blocks):",
        "for block_cache in cache.blocks:",
    ),
    _in_model(
        "model backward: gradients of the layers reversed",
        "They are collected from last to first and stored from first to last.",
        "dblocks.insert(0, dweights)",
        "dblocks.append(dweights)",
    ),
    _in_model(
        "model backward: final norm's gradient forgotten",
        "final_norm receives zeros, and so it never learns.",
        'grads | {"final_norm": dfinal_norm, "unembedding": dunembedding}',
        'grads | {"final_norm": 0 * dfinal_norm, "unembedding": dunembedding}',
    ),
    _in_model(
        "model backward: norms left out",
        "Only the matrices receive gradients.",
        '    return grads | {"final_norm": dfinal_norm, "unembedding": dunembedding}',
        '    return {key: g for key, g in grads.items() if g.ndim > 1} | {"unembedding": dunembedding}',
    ),
    # data
    _in_tiny(
        "targets: not shifted",
        "Each position is to predict its own input, which is easy.",
        "TARGET_IDS = _rows(word[1:] for word in WORDS)",
        "TARGET_IDS = _rows(word[:-1] for word in WORDS)",
    ),
    _in_tiny(
        "targets: shifted backwards",
        "Each position is to predict the token before it.",
        "TARGET_IDS = _rows(word[1:] for word in WORDS)",
        "TARGET_IDS = np.roll(INPUT_IDS, 1, axis=1)",
    ),
    _in_tiny(
        "targets: cross rows",
        "The batch is shifted as one long row, so a last target is the first input of the next row.",
        "TARGET_IDS = _rows(word[1:] for word in WORDS)",
        "TARGET_IDS = np.roll(INPUT_IDS, -1)",
    ),
    _in_tiny(
        "targets: last one wraps around",
        "Each row is shifted in itself, so its last target is its own first input.",
        "TARGET_IDS = _rows(word[1:] for word in WORDS)",
        "TARGET_IDS = np.roll(INPUT_IDS, -1, axis=1)",
    ),
    _in_data(
        "batch: targets not shifted",
        "Inputs and targets are the same tokens.",
        "return spans[:, :-1], spans[:, 1:]",
        "return spans[:, :-1], spans[:, :-1]",
    ),
    _in_data(
        "batch: inputs and targets exchanged",
        "The model learns to tell the token before.",
        "return spans[:, :-1], spans[:, 1:]",
        "return spans[:, 1:], spans[:, :-1]",
    ),
    _in_data(
        "batch: targets cross rows",
        "The batch is shifted as one long row.",
        "return spans[:, :-1], spans[:, 1:]",
        "return spans[:, :-1], np.roll(spans[:, :-1], -1)",
    ),
    _in_data(
        "batch: every other token",
        "Inputs skip a token, and targets lie between them.",
        "spans = ids[starts[:, np.newaxis] + np.arange(context + 1)]",
        "spans = ids[starts[:, np.newaxis] + 2 * np.arange(context + 1) % (context + 1)]",
    ),
)
# fmt: on
