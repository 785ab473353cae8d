"""MaskExplorer: the model with one layer, live, under a mask that the reader makes."""

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import traitlets

from labs.llm.arguments import as_ids
from labs.llm.model import ModelConfig, forward, require_params
from labs.widgets.shared import modules, sizes
from labs.widgets.shared.base import MOST_CELLS, CourseWidget, require_vocabulary

#: A page carries every parameter: larger models make it slow to load.
MOST_PARAMS = 8192

_DECIMALS = 2


class MaskExplorer(CourseWidget):
    """Run a model with one layer on a text, while the reader makes the mask and changes the tokens.

    The reader switches the causal mask, padding for each position and single entries of the mask; scores,
    weights, outputs and logits follow. Pairs by which a position reads what it should say are outlined. For
    another token the widget shows how far the logits of each position move; for a row with nothing to read,
    where NaN begins, which the library refuses.

    Args:
        params: the parameters, as from `labs.llm.model.init_params`; at most 8192 numbers in all; copied.
        config: their ModelConfig, with one layer.
        ids: the tokens, (B,T).
        targets: the token that follows each of them, (B,T): targets[b,t] is ids[b,t+1].
        vocabulary: a text for each id.

    Raises: TypeError or ValueError, saying which argument and what it must be.
    """

    _esm = modules.script("mask_explorer/view.js")
    _css = modules.style("shared/grid.css", "shared/attention.css", "mask_explorer/style.css")
    sections = ("tensor", "attention", "mask_explorer")

    #: Parameter key -> its numbers, row-major; and what else the arithmetic needs: D, H, base, eps.
    params = traitlets.Dict().tag(sync=True)
    settings = traitlets.Dict().tag(sync=True)
    #: (B, H, T, dh).
    shape = traitlets.List(traitlets.Int()).tag(sync=True)
    #: The tokens at first, (B,T) row-major, and the target of each text's last position.
    ids = traitlets.List(traitlets.Int()).tag(sync=True)
    last_targets = traitlets.List(traitlets.Int()).tag(sync=True)
    vocabulary = traitlets.List(traitlets.Unicode()).tag(sync=True)
    #: The magnitudes with the strongest colour in "output" and "logits".
    limit = traitlets.Dict().tag(sync=True)
    decimals = traitlets.Int(_DECIMALS).tag(sync=True)
    #: How many digits the cells have room for.
    digits = traitlets.Int().tag(sync=True)
    #: How many grids, of pairs and of results, stand side by side, each on wide and on narrow pages.
    across = traitlets.Dict().tag(sync=True)
    #: What the reader chooses: the text and the head that are shown,
    batch = traitlets.Int(0).tag(sync=True)
    head = traitlets.Int(0).tag(sync=True)
    #: the causal mask, which positions (B,T) are padding, the flipped entries i*T + j,
    causal = traitlets.Bool(True).tag(sync=True)
    padding = traitlets.List(traitlets.Bool()).tag(sync=True)
    flipped = traitlets.List(traitlets.Int()).tag(sync=True)
    #: whether the targets stand, wrongly, at the same position, and the tokens, (B,T).
    same_position = traitlets.Bool(False).tag(sync=True)
    tokens = traitlets.List(traitlets.Int()).tag(sync=True)

    def __init__(self, params: Mapping, config: ModelConfig, ids, targets, vocabulary: Sequence[str]):
        _require_model(params, config)
        texts, last_targets = _require_texts(ids, targets, config.vocab_size)
        names = require_vocabulary(vocabulary, config.vocab_size)
        B, T = texts.shape
        logits, cache = forward(params, texts, config)
        attention = cache.blocks[0].attention
        scores = attention.q @ attention.k.swapaxes(-1, -2) / np.sqrt(config.d_head)
        # other tokens and masks give other numbers, which are hardly ever longer
        digits = max(sizes.most_digits(array, _DECIMALS) for array in (scores, logits))
        columns = {"pairs": [T, T, T + 1], "results": [config.d_head, len(names)]}
        super().__init__(
            params={key: array.ravel().tolist() for key, array in params.items()},
            settings={
                "D": config.d_model,
                "H": config.n_heads,
                "base": config.rope_base,
                "eps": config.norm_eps,
            },
            shape=[B, config.n_heads, T, config.d_head],
            ids=texts.ravel().tolist(),
            last_targets=last_targets.tolist(),
            vocabulary=names,
            limit={"output": _largest(attention.v), "logits": _largest(logits)},
            digits=digits,
            across={
                name: sizes.for_widths(partial(sizes.across, counts, digits))
                for name, counts in columns.items()
            },
            padding=[False] * (B * T),
            tokens=texts.ravel().tolist(),
            height=partial(_height, B, config.n_heads, T, columns, digits),
        )

    def counts(self) -> dict[str, int]:
        B, H, _, _ = self.shape
        return {"batch": B, "head": H}

    @traitlets.validate("padding")
    def _require_padding(self, proposal):
        if len(proposal["value"]) != len(self.ids):
            raise traitlets.TraitError(
                f"padding must have B*T = {len(self.ids)} entries, got {len(proposal['value'])}"
            )
        return proposal["value"]

    @traitlets.validate("tokens")
    def _require_tokens(self, proposal):
        tokens, V = proposal["value"], len(self.vocabulary)
        if len(tokens) != len(self.ids) or not all(0 <= token < V for token in tokens):
            raise traitlets.TraitError(
                f"tokens must be B*T = {len(self.ids)} ids from 0 to {V - 1}, got {tokens}"
            )
        return tokens

    @traitlets.validate("flipped")
    def _require_flipped(self, proposal):
        flipped, pairs = proposal["value"], self.shape[2] ** 2
        if len(set(flipped)) != len(flipped) or not all(0 <= pair < pairs for pair in flipped):
            raise traitlets.TraitError(f"flipped must be distinct pairs from 0 to {pairs - 1}, got {flipped}")
        return flipped

    def describe(self) -> str:
        B, _, T, _ = self.shape
        return f"logits [{B},{T},{len(self.vocabulary)}] (B,T,V) of one layer, causal mask"


def _require_model(params: Mapping, config: ModelConfig) -> None:
    """Raise unless these are the parameters of a model with one layer that a page can carry."""
    require_params(params, config)
    if config.n_layers != 1:
        raise ValueError(f"config must have one layer, got n_layers = {config.n_layers}")
    count = sum(array.size for array in params.values())
    if count > MOST_PARAMS:
        raise ValueError(f"params must have at most {MOST_PARAMS} numbers, got {count}: take a smaller model")
    for key, array in params.items():
        if not np.isfinite(array).all():
            raise ValueError(f"params[{key!r}] must be finite, got {array[~np.isfinite(array)][0]}")


def _require_texts(ids, targets, V: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the ids (B,T) and the last target of each text; raise unless the targets are one step on."""
    texts, following = as_ids("ids", ids, V), as_ids("targets", targets, V)
    if texts.ndim != 2 or following.shape != texts.shape:
        raise ValueError(f"ids and targets must both be (B,T), got {texts.shape} and {following.shape}")
    B, T = texts.shape
    if T * max(T, V) > MOST_CELLS or B * T > MOST_CELLS:
        raise ValueError(
            f"ids must be few enough that T*T, T*V and B*T are at most {MOST_CELLS}, "
            f"got B = {B}, T = {T}, V = {V}: take a slice"
        )
    if (following[:, :-1] != texts[:, 1:]).any():
        raise ValueError(
            "targets must be the ids one position on, targets[b,t] == ids[b,t+1]: the reader moves them "
            "to the same position by a switch"
        )
    return texts, following[:, -1]


def _largest(array: np.ndarray) -> float:
    return float(np.abs(array).max()) or 1.0


#: Heights in rem, from style.css.
_TEXT = sizes.LINE + 4 * 2.0 + sizes.BAR
_MOVED = {sizes.WIDE: 4.75, sizes.NARROW: 7.75}
_VERDICT = {sizes.WIDE: 4.75, sizes.NARROW: 9.25}
_REPORT = {sizes.WIDE: 12.0, sizes.NARROW: 20.0}


def _height(B: int, H: int, T: int, columns: Mapping[str, list], digits: int, width: str) -> float:
    """The height of the widget in rem on a page of this width, for grids of so many columns."""
    pickers = (B > 1) + (H > 1)
    lines = (pickers > 0) + 1 if width == sizes.WIDE else pickers + 3  # two boxes and a button
    heights = [sizes.grid_height(rows, width, lines=2) for rows in (T, T, T + 1)]
    pairs, results = (sizes.across(columns[name], digits, width) for name in ("pairs", "results"))
    grids = sizes.stacked(heights, pairs) + sizes.stacked([heights[0]] * 2, results)
    sentences = _MOVED[width] + _VERDICT[width] + sizes.status_height(width) + _REPORT[width]
    return sizes.TITLE + lines * sizes.CONTROL + _TEXT + grids + sentences + sizes.LINE
