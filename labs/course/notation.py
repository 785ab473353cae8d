"""The notation as data: symbol, name in the code, shape, colour.  `book/notation.md` is made from it."""

from typing import NamedTuple

from labs.llm import tiny


class Size(NamedTuple):
    """A letter that stands for a size."""

    letter: str
    symbol: str  # TeX
    meaning: str


class Tensor(NamedTuple):
    """A tensor that the course names."""

    symbol: str  # TeX
    code: str
    shape: str  # letters of SIZES, separated by commas
    role: str  # of labs.course.palette.ROLES: its colour
    meaning: str


SIZES = (
    Size("B", "B", "batch: sequences handled together"),
    Size("T", "T", "positions in one sequence"),
    Size("D", "d", "model width: numbers per position"),
    Size("H", "H", "heads"),
    Size("dh", "d_h", "head width, d / H"),
    Size("F", "f", "feed-forward width"),
    Size("V", "V", "vocabulary: different tokens"),
    Size("L", "L", "layers: blocks stacked"),
)

TENSORS = (
    Tensor(r"\text{ids}", "ids", "B,T", "tokens", "input tokens as integers"),
    Tensor(
        r"\text{targets}", "targets", "B,T", "tokens", "the tokens one step on, which the model should expect"
    ),
    Tensor("E", "embedding", "V,D", "weight", "one row for each token of the vocabulary"),
    Tensor("X", "x", "B,T,D", "x", "the residual stream as it enters a block"),
    Tensor("z", "z", "B,T,D", "norm", "X after RMSNorm: what attention reads"),
    Tensor("W_Q, W_K, W_V, W_O", "wq, wk, wv, wo", "D,D", "weight", "projections of attention"),
    Tensor("Q", "q", "B,H,T,dh", "q", "queries: what a position looks for"),
    Tensor("K", "k", "B,H,T,dh", "k", "keys: what a position offers to be found by"),
    Tensor("V", "v", "B,H,T,dh", "v", "values: what a position hands over when read"),
    Tensor(r"Q_\text{rot}", "q_rot", "B,H,T,dh", "q", "queries after RoPE, rotated by their position"),
    Tensor(r"K_\text{rot}", "k_rot", "B,H,T,dh", "k", "keys after RoPE"),
    Tensor("S", "scores", "B,H,T,T", "attention", "scores: last axis = the position that is read"),
    Tensor(
        r"\text{masked}", "masked", "B,H,T,T", "attention", "S where reading is allowed, else minus infinity"
    ),
    Tensor("P", "p", "B,H,T,T", "attention", "attention weights: each row sums to one"),
    Tensor("O", "o", "B,H,T,dh", "joined", "what each head has read"),
    Tensor(r"\text{joined}", "joined", "B,T,D", "joined", "the heads side by side again"),
    Tensor(
        r"\text{attn\_out}", "attn_out", "B,T,D", "joined", "what attention adds to the stream: joined W_O"
    ),
    Tensor("R", "r", "B,T,D", "x", "the residual stream between the two halves of a block"),
    Tensor("n", "n", "B,T,D", "norm", "R after RMSNorm: what the feed-forward reads"),
    Tensor("W_1, W_3", "w1, w3", "D,F", "weight", "up-projections of SwiGLU"),
    Tensor("W_2", "w2", "F,D", "weight", "down-projection of SwiGLU"),
    Tensor("u", "u", "B,T,F", "ffn", "first up-projection, n W_1"),
    Tensor(r"\text{gate}", "gate", "B,T,F", "ffn", "SiLU(u)"),
    Tensor(r"\text{up}", "up", "B,T,F", "ffn", "second up-projection, n W_3"),
    Tensor(r"\text{hidden}", "hidden", "B,T,F", "ffn", "gate times up, entry by entry"),
    Tensor(
        r"\text{ffn\_out}", "ffn_out", "B,T,D", "ffn", "what the feed-forward adds to the stream: hidden W_2"
    ),
    Tensor("Y", "y", "B,T,D", "x", "the residual stream as it leaves a block"),
    Tensor(r"\text{final}", "final", "B,T,D", "norm", "Y after the final RMSNorm"),
    Tensor("U", "unembedding", "D,V", "weight", "one column for each token of the vocabulary"),
    Tensor(r"\text{logits}", "logits", "B,T,V", "logits", "a score for every possible next token"),
    Tensor(r"\text{probs}", "probs", "B,T,V", "logits", "softmax of the logits: what the model expects"),
    Tensor(r"\ell", "loss", "", "logits", "mean cross-entropy over all B T targets, in nats"),
    Tensor("G_X", "dx", "as X", "x", "gradient of the loss with respect to X; the same for every other name"),
)


def swatch(role: str) -> str:
    """The colour of a role as HTML for a Markdown page; the role's name says it again in words."""
    return f'<span class="labs-swatch" style="--labs-role: var(--labs-role-{role})"></span> {role}'


def example_sizes() -> dict[str, int]:
    """The number that each letter of SIZES has in the course's example."""
    (batch, positions), config = tiny.INPUT_IDS.shape, tiny.CONFIG
    return {
        "B": batch,
        "T": positions,
        "D": config.d_model,
        "H": config.n_heads,
        "dh": config.d_head,
        "F": config.d_ff,
        "V": config.vocab_size,
        "L": config.n_layers,
    }


def sizes_markdown() -> str:
    """The table of sizes, with the number that each has in the example."""
    values = example_sizes()
    rows = [
        f"| ${size.symbol}$ | `{size.letter}` | {values[size.letter]} | {size.meaning} |" for size in SIZES
    ]
    return "\n".join(["| symbol | letter in shapes | in the example | meaning |", "|---|---|---|---|", *rows])


def tensors_markdown() -> str:
    """The table of tensors, in the order in which the forward pass meets them."""
    rows = [
        f"| ${t.symbol}$ | `{t.code}` | {_shape(t.shape)} | {swatch(t.role)} | {t.meaning} |" for t in TENSORS
    ]
    return "\n".join(["| symbol | in the code | shape | colour | meaning |", "|---|---|---|---|---|", *rows])


def _shape(letters: str) -> str:
    if not letters:
        return "one number"
    return letters if letters.startswith("as ") else f"({letters})"
