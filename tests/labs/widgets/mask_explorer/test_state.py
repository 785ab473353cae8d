"""What MaskExplorer shows and says, held to labs.llm."""

import numpy as np
import pytest

from labs.llm import tiny
from labs.llm.model import attention, causal_mask, forward
from labs.widgets import MaskExplorer

NAMES = ("params", "settings", "shape", "ids", "last_targets", "vocabulary", "limit", "decimals", "strings")
NAMES += ("digits", "batch", "head", "causal", "same_position", "padding", "flipped", "tokens")
IDS = tiny.INPUT_IDS


@pytest.fixture(scope="module")
def call(javascript):
    return javascript("mask_explorer/state.js")


@pytest.fixture(scope="module")
def shown(call):
    """A function `shown(name, held, *arguments)`: a function of the module on the state made of `held`."""
    return lambda name, held, *more: call(
        f"((held, ...more) => {name}(maskState(held), ...more))", held, *more
    )


def held(**chosen):
    """What the model of a widget on the course's example holds."""
    widget = MaskExplorer(tiny.params(), tiny.CONFIG, IDS, tiny.TARGET_IDS, tiny.VOCABULARY)
    return {name: getattr(widget, name) for name in NAMES} | chosen


def changed(batch, position, letter):
    """The tokens with another letter at a position, as the model holds them."""
    ids = IDS.copy()
    ids[batch, position] = tiny.VOCABULARY.index(letter)
    return ids.ravel().tolist()


def padded(*positions, batch=0):
    """Which positions are padding, as the model holds it."""
    padding = np.zeros((2, 5), bool)
    padding[batch, list(positions)] = True
    return padding.ravel().tolist()


def texts(spec):
    return [[cell["text"] if cell else "" for cell in row] for row in spec["cells"]]


def written(array):
    return [[f"{value:z.2f}" for value in row] for row in array]


# ---- the mask ----


def allowed(call, **chosen):
    rule = {"causal": True, "padded": [False] * 5, "flipped": [], "T": 5} | chosen
    return np.reshape(call("allowedPairs", rule), (5, 5))


def test_mask_is_causal_and_not_padding(call):
    assert (allowed(call) == causal_mask(5)).all()
    assert allowed(call, causal=False).all()
    real = np.array([True, True, False, True, True])
    assert (allowed(call, padded=(~real).tolist()) == causal_mask(5) & real).all()


def test_single_entries_are_turned_over_both_ways(call):
    expected = causal_mask(5)
    expected[0, 4], expected[3, 1] = True, False
    assert (allowed(call, flipped=[4, 16]) == expected).all()


def test_choosing_an_entry_again_puts_it_back(call):
    assert call("flip", [3], 7) == [3, 7]
    assert call("flip", [3, 7], 3) == [7]
    assert call("flip", [3], -1) == [3]


# ---- what is shown ----


@pytest.mark.parametrize("batch", [0, 1])
def test_grids_are_the_librarys(shown, batch):
    mask = causal_mask(5)
    mask[1, 4] = True
    chosen = held(batch=batch, head=1, flipped=[9], tokens=changed(batch, 3, "s"))
    ids = np.reshape(chosen["tokens"], (2, 5))
    logits, cache = forward(tiny.params(), ids, tiny.CONFIG, mask=mask)
    q, k, v, p = (array[batch, 1] for array in cache.blocks[0].attention)
    scores = q @ k.T / 2
    specs = shown("maskSpecs", chosen)
    assert [spec["label"] for spec in specs] == [f"{name}[{batch},1]" for name in ("S", "S + M", "P")]
    assert texts(specs[0]) == written(scores)
    assert texts(specs[1]) == written(np.where(mask, scores, -np.inf))
    assert [row[:5] for row in texts(specs[2])[:5]] == written(p)
    output, last = shown("resultSpecs", chosen)
    assert texts(output) == written(p @ v)
    assert texts(last) == written(logits[batch])
    assert [column["label"] for column in last["columns"]] == list(tiny.VOCABULARY)
    assert all(cell["disabled"] for row in last["cells"] for cell in row)


def outlined(spec):
    return [
        cell["id"] for row in spec["cells"] for cell in row if cell and cell.get("className") == "labs-leak"
    ]


@pytest.mark.parametrize(
    ("chosen", "ids"),
    [
        ({}, []),
        ({"causal": False}, [1, 7, 13, 19]),  # one place to the right; the last answer is not in the text
        ({"causal": False, "padding": padded(1)}, [13, 19]),  # it is not read, and it is asked nothing
        ({"flipped": [7, 9]}, [7]),
        ({"same_position": True}, [0, 6, 12, 18, 24]),
        ({"same_position": True, "flipped": [6, 12]}, [0, 18, 24]),
    ],
)
def test_outlined_pairs_hold_the_answer(shown, chosen, ids):
    specs = shown("maskSpecs", held(**chosen))
    assert [outlined(spec) for spec in specs] == [[], ids, ids]
    assert shown("((state) => state.leaks)", held(**chosen)) == ids


def test_targets_follow_the_tokens_and_the_switch(shown):
    def targets(**chosen):
        return "".join(shown("targetText", held(**chosen), t) for t in range(5))

    assert targets() == "ttend"
    assert targets(batch=1) == "ausal"
    assert targets(tokens=changed(0, 3, "s")) == "ttsnd"
    assert targets(same_position=True) == "atten"
    assert targets(padding=padded(1, 4)) == "t–en–"


# ---- what has moved ----


def moved(shown, **chosen):
    return [shown("movedText", held(**chosen), t) for t in range(5)]


@pytest.mark.parametrize("flipped", [[], [4]])
def test_moved_is_the_largest_change_of_a_positions_logits(shown, flipped):
    mask = causal_mask(5)
    mask.ravel()[flipped] = True
    tokens = changed(0, 4, "s")
    before, after = (
        forward(tiny.params(), np.reshape(ids, (2, 5)), tiny.CONFIG, mask=mask)[0][0] for ids in (IDS, tokens)
    )
    change = np.abs(after - before).max(axis=1)
    expected = ["0" if value == 0 else f"{value:z.2f}" for value in change]
    assert moved(shown, tokens=tokens, flipped=flipped) == expected
    assert expected[1:4] == ["0"] * 3


def test_a_small_change_is_not_none(call):
    strings = held()["strings"]
    strings["own"] = strings["mask_explorer"]
    state = {"moved": [0, 1e-9, 0.004, 0.006], "decimals": 2, "strings": strings}
    assert [call("movedText", state, t) for t in range(4)] == ["0", "<0.01", "<0.01", "0.01"]


@pytest.mark.parametrize(
    ("chosen", "sentence"),
    [
        ({}, "Choose another token above, and see which logits move."),
        (
            {"tokens": changed(0, 3, "s")},
            "The change has moved the logits of position 3, 4. Identical to the last bit: position 0, 1, 2.",
        ),
        ({"tokens": changed(0, 0, "s")}, "The change has moved the logits of position 0, 1, 2, 3, 4."),
        (
            {"tokens": changed(0, 4, "s"), "flipped": [9]},
            "The change has moved the logits of position 1, 4. Identical to the last bit: position 0, 2, 3. "
            "Yet the change comes after position 1: the mask lets the future through.",
        ),
        (
            {"tokens": changed(1, 0, "s")},
            "Choose another token above, and see which logits move.",
        ),  # other text
    ],
)
def test_moved_in_words(shown, chosen, sentence):
    assert shown("movedVerdict", held(**chosen)) == sentence


# ---- what leaks ----


@pytest.mark.parametrize(
    ("chosen", "beginning", "wrong"),
    [
        ({}, "No position can read its own answer", False),
        ({"causal": False}, "A leak at position 0, 1, 2, 3: the answer stands one place", True),
        ({"flipped": [4]}, "Not causal: query 0 “a” reads key 4 “n”, which comes later.", True),
        (
            {"same_position": True},
            "A leak at position 0, 1, 2, 3, 4: the answer is the token itself",
            True,
        ),
        ({"same_position": True, "flipped": [0, 6, 12, 18, 24]}, "A leak all the same", True),
    ],
)
def test_leaks_in_words(shown, chosen, beginning, wrong):
    assert shown("leakVerdict", held(**chosen)).startswith(beginning)
    assert shown("leaking", held(**chosen)) == wrong


# ---- a row with nothing to read ----


def test_without_an_empty_row_there_is_something_to_try(shown):
    report = shown("reportOf", held())
    assert report["title"] == "To try"
    assert len(report["steps"]) == 4


def test_where_nan_begins(shown):
    report = shown("reportOf", held(padding=padded(0)))
    assert report["title"] == "query 0 “a” has nothing to read"
    steps = [step.replace("\N{NON-BREAKING HYPHEN}", "-") for step in report["steps"]]
    assert steps[0].endswith("so the largest is -inf.")
    assert "-inf − (-inf) = NaN" in steps[1]
    assert steps[2].startswith("exp gives NaN")


def test_the_library_says_what_the_widget_quotes(shown):
    quoted = shown("reportOf", held(padding=padded(0)))["steps"][3].split("“")[1:]
    mask = causal_mask(5) & np.array([False, True, True, True, True])
    q = np.zeros((1, 1, 5, 2))
    with pytest.raises(ValueError, match="mask must let every query read something") as refusal:
        attention(q, q, q, mask)
    assert len(quoted) == 2
    assert all(quote.split("”")[0] in str(refusal.value) for quote in quoted)


def test_only_the_empty_row_becomes_nan(shown):
    chosen = held(padding=padded(0))
    weights = texts(shown("maskSpecs", chosen)[2])
    output, logits = (texts(spec) for spec in shown("resultSpecs", chosen))
    assert weights[0] == ["NaN"] * 6
    assert output[0] == ["NaN"] * 4
    assert logits[0] == ["NaN"] * 9
    assert not any("NaN" in row for row in (*output[1:], *logits[1:]))


def test_padding_of_another_text_changes_nothing(shown):
    assert shown("maskSpecs", held(padding=padded(0, batch=1))) == shown("maskSpecs", held())


# ---- cells in words ----


def test_pairs_in_words(shown):
    _, cache = forward(tiny.params(), IDS, tiny.CONFIG)
    q, k, _, p = (array[0, 0] for array in cache.blocks[0].attention)
    scores = q @ k.T / 2
    assert shown("pairSentence", held(), 3 * 5 + 1) == (
        f"query 3 “e” may read key 1 “t”: score {scores[3, 1]:z.2f}, weight {p[3, 1]:z.2f}."
    )
    assert shown("pairSentence", held(), 1 * 5 + 3) == (
        f"query 1 “t” may not read key 3 “e”: score {scores[1, 3]:z.2f}, weight 0.00."
    )
    assert shown("pairSentence", held(), 25 + 3) == "The row of query 3 “e” adds up to 1.00."
    column = f"The column of key 2 “t” adds up to {p[:, 2].sum():z.2f}."
    assert shown("pairSentence", held(), 25 + 5 + 2) == column


def test_results_in_words(shown):
    logits, cache = forward(tiny.params(), IDS, tiny.CONFIG)
    o = cache.blocks[0].attention.p[1, 1] @ cache.blocks[0].attention.v[1, 1]
    chosen = held(batch=1, head=1)
    output = f"position 2 “u”, column 3 of the output: {o[2, 3]:z.2f}."
    assert shown("outputSentence", chosen, 2 * 4 + 3) == output
    logit = f"position 2 “u” gives “c” the logit {logits[1, 2, 1]:z.2f}."
    assert shown("logitSentence", chosen, 2 * 9 + 1) == logit
