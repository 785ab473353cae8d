"""What the TraceExplorer shows, computed without a browser."""

import numpy as np
import pytest

from labs.llm import tiny
from labs.llm.model import ModelConfig
from labs.llm.parameters import init_params
from labs.llm.trace import trace
from labs.widgets import TraceExplorer

TINY = (tiny.params(), tiny.CONFIG, tiny.INPUT_IDS, tiny.TARGET_IDS)
TRACED = trace(TINY[0], *TINY[2:], TINY[1])
WIDGET = TraceExplorer(*TINY, tiny.VOCABULARY)

DEEP = ModelConfig(7, d_model=8, n_heads=2, n_layers=2, d_ff=6)
DEEP_IDS = np.random.default_rng(0).integers(0, 7, (3, 6))
DEEP_WIDGET = TraceExplorer(init_params(DEEP, 1), DEEP, DEEP_IDS[:, :-1], DEEP_IDS[:, 1:], "abcdefg")

#: The state as the widget reads it; then a function of it.
AT = """((given, chosen, ...more) => {
  if (globalThis.from !== given.start) {
    const { bytes, ...rest } = globalThis.models[given.start];
    globalThis.trace = readTrace({ ...rest, numbers: new DataView(Uint8Array.from(bytes).buffer) });
    globalThis.from = given.start;
  }
  const held = globalThis.models[given.start];
  const start = { step: held.step, layer: 0, batch: 0, head: 0, selected: -1, trail: [] };
  return (%s)(traceState(globalThis.trace, { ...held, ...start, ...chosen }), ...more);
})"""


@pytest.fixture(scope="module")
def call(javascript):
    call = javascript("trace_explorer/state.js")
    for name, widget in (("tiny", WIDGET), ("deep", DEEP_WIDGET)):
        kept = ("steps", "sizes", "layers", "labels", "strings", "step")
        model = {key: getattr(widget, key) for key in kept} | {"bytes": list(widget.numbers)}
        call("((name, model) => { (globalThis.models ??= {})[name] = model; return null; })", name, model)
    return call


@pytest.fixture(scope="module")
def at(call):
    """A function `at(key, function, *more, model="tiny", **chosen)`: the result for the state at a step."""

    def at(key, function, *more, model="tiny", **chosen):
        widget = {"tiny": WIDGET, "deep": DEEP_WIDGET}[model]
        return call(AT % function, {"start": model}, {"step": place(key, widget), **chosen}, *more)

    return at


def place(key, widget=WIDGET):
    keys = [step["key"] for step in widget.steps]
    return keys.index(key if key in keys else f"blocks.0.{key}")


def flat(*index, shape):
    return int(np.ravel_multi_index(index, shape))


# ---- reading ----


def test_every_number_arrives_bit_for_bit(at):
    values = """({ steps, floats }, place) => {
      const { start, shape } = steps[place];
      return [...floats.slice(start, start + count(shape))].map(String);
    }"""
    for step in TRACED.steps:
        found = [float(text.replace("Infinity", "inf")) for text in at("x", values, place(step.key))]
        assert found == step.value.ravel().tolist(), step.key


def test_selected_is_a_late_position_unless_the_reader_chooses(at):
    assert at("scores", "(state) => state.entry") == [0, 0, 4, 1]
    assert at("loss", "(state) => state.entry") == []
    chosen = {"batch": 1, "head": 1, "selected": flat(3, 2, shape=(5, 5))}
    assert at("scores", "(state) => state.entry", **chosen) == [1, 1, 3, 2]


# ---- moving ----


def test_the_entry_keeps_its_place(at):
    here = {"batch": 1, "head": 1, "selected": flat(3, 2, shape=(5, 5))}
    found = at("scores", "valuesAt", place("p"), **here)
    assert found == {"step": place("p"), "layer": 0, "selected": flat(3, 2, shape=(5, 5))}
    # query 3 is position 3 of q; what q has besides is as usual
    assert at("scores", "valuesAt", place("q_rot"), **here)["selected"] == flat(3, 1, shape=(5, 4))
    assert (
        at("q_rot", "valuesAt", place("scores"), selected=flat(2, 3, shape=(5, 4)))["selected"] == 2 * 5 + 1
    )
    assert at("scores", "valuesAt", place("loss"), **here)["selected"] == 0


def test_an_entry_that_is_not_there_is_not_selected(at):
    """Where there is no kernel, or before it answers, `selected` may belong to another tensor."""
    assert at("loss", "(state) => [state.selected, state.entry]", selected=30) == [0, []]
    assert at("nll", "(state) => state.entry", selected=5) == [0, 4]


@pytest.mark.parametrize(
    ("key", "name", "readers"),
    [
        ("r", "r", "ffn_inv_rms ffn_unit y"),
        ("dr", "r", "ffn_inv_rms ffn_unit y"),
        ("dr_branch", "r", "ffn_inv_rms ffn_unit y"),
        ("z", "z", "q k v"),
        ("dwq", "wq", "q"),
        ("scores", "scores", "masked"),
        ("ids", "ids", "x"),  # and dembedding, which is no reader of the forward pass
        ("ffn_mean", "ffn_mean", "dr_branch"),
        ("loss", "loss", ""),
        ("dembedding", "embedding", "x"),
    ],
)
def test_readers(at, key, name, readers):
    names = [step["name"] for step in WIDGET.steps]
    found = at(key, "readersOf")
    assert found["name"] == name
    assert [names[n] for n in found["places"]] == readers.split()


def test_readers_in_the_next_layer(at):
    found = at("blocks.0.y", "readersOf", model="deep")["places"]
    assert [DEEP_WIDGET.steps[n]["key"] for n in found] == ["blocks.1.x"]


def test_where_return_leads(at):
    assert at("x", "entryBefore") is None
    trail = [[place("x"), 0, 0, 3], [place("dscores"), 0, 1, 17]]
    assert at("x", "entryBefore", trail=trail) == "dscores[0,1,3,2]"
    assert at("x", "entryBefore", trail=[[place("loss"), 1, 1, 0]]) == "loss"


def test_choices_that_change_nothing(at):
    assert at("scores", "idleChoices") == {"batch": None, "head": None}
    assert at("x", "idleChoices") == {"batch": None, "head": "x is the same for every head"}
    assert at("dw1", "idleChoices") == {
        "batch": "dw1 is the same for every batch",
        "head": "dw1 is the same for every head",
    }


def test_to_an_entry(at):
    found = at("dwq", "valuesAtEntry", place("dq"), [1, 0, 3, 2])
    assert found == {"step": place("dq"), "layer": 0, "batch": 1, "head": 0, "selected": 3 * 4 + 2}
    found = at("q", "valuesAtEntry", place("wq"), [7, 3])
    assert found == {"step": place("wq"), "layer": 0, "selected": 7 * 8 + 3}


def test_walk(at):
    steps = [step["key"] for step in WIDGET.steps]
    computed = [n for n, step in enumerate(WIDGET.steps) if step["phase"] != "given"]
    assert at("x", "(state) => state.walk") == computed
    assert at("x", "neighbour", 1) == place("attn_inv_rms")
    assert at("x", "neighbour", -1) is None
    assert at("dembedding", "neighbour", 1) is None
    assert at("loss", "neighbour", 1) == steps.index("dlogits")
    # what is given stands where it is read first
    assert at("wq", "walkPosition") == at("q", "walkPosition")
    assert at("wq", "neighbour", 1) == place("q")
    assert at("wq", "neighbour", -1) == place("z")
    assert at("x", "firstOf", "backward") == steps.index("dlogits")


def test_layers(at):
    keys = [step["key"] for step in DEEP_WIDGET.steps]
    same = at("blocks.0.scores", "sameInLayer", 1, model="deep")
    assert same == keys.index("blocks.1.scores")
    assert at("loss", "sameInLayer", 1, model="deep") is None
    assert at("blocks.0.scores", "valuesAt", same, model="deep")["layer"] == 1
    assert at("blocks.1.scores", "valuesAt", keys.index("loss"), model="deep", layer=1)["layer"] == 1
    assert (
        at("blocks.1.scores", "(state) => shortKey(state, state.current.key)", model="deep")
        == "blocks.1.scores"
    )
    assert at("scores", "(state) => shortKey(state, state.current.key)") == "scores"


# ---- numbers ----


@pytest.mark.parametrize(
    ("value", "short", "long"),
    [
        ("0.26313615896", "0.2631", "0.2631361590"),
        ("-1.7", "-1.7", "-1.7"),
        ("3", "3", "3"),
        ("0", "0", "0"),
        ("-0.04321987654321", "-0.04322", "-0.04321987654"),
        ("0.0000123456789012", "1.235e-5", "1.234567890e-5"),
        ("1.23456789012e-9", "1.235e-9", "1.234567890e-9"),
        ("-0.00012345678901", "-0.0001235", "-0.0001234567890"),
        ("0.0001", "0.0001", "0.0001"),
        ("12.34567890123", "12.3457", "12.34567890"),
        ("-Infinity", "-inf", "-inf"),
    ],
)
def test_digits(call, value, short, long):
    assert call("((text) => shortNumber(Number(text)))", value) == short
    assert call("((text) => longNumber(Number(text)))", value) == long


# ---- grids ----


def shown(value):
    return [["-inf" if entry == -np.inf else f"{entry:z.2f}" for entry in row] for row in value]


def texts(spec):
    return [[cell["text"] for cell in row] for row in spec["cells"]]


def test_grid_shows_the_chosen_batch_and_head(at):
    spec = at("masked", "currentSpec", batch=1, head=0, selected=7)
    assert spec["label"] == "masked[1,0]"
    assert texts(spec) == shown(TRACED["blocks.0.masked"].value[1, 0])
    assert spec["cells"][0][1] == {"id": 1, "text": "-inf", "share": None, "className": "labs-masked"}
    assert [row["label"] for row in spec["rows"]] == list("causa")
    assert (spec["corner"], spec["selected"]) == (["i", "j"], 7)


@pytest.mark.parametrize(
    ("key", "shape", "corner"),
    [("wq", (8, 8), ["m", "d"]), ("attn_norm", (1, 8), [None, "d"]), ("loss", (1, 1), [None, None])],
)
def test_what_has_no_batch_is_shown_whole(at, key, shape, corner):
    spec = at(key, "currentSpec", batch=1, head=1)
    assert np.shape(texts(spec)) == shape
    assert spec["corner"] == corner


def test_letters(at):
    assert [column["label"] for column in at("logits", "currentSpec")["columns"]] == list(tiny.VOCABULARY)
    assert [row["label"] for row in at("angle", "currentSpec")["rows"]] == [None] * 5  # of no one word
    assert [column["label"] for column in at("nll", "currentSpec", batch=1)["columns"]] == list("causa")


def test_small_gradients_have_digits(at):
    spec = at("dx", "currentSpec")
    assert spec["cells"][3][2]["text"] == f"{TRACED['blocks.0.dx'].value[0, 3, 2]:.3f}"


def read_cells(source):
    return {
        (r, c)
        for r, row in enumerate(source["spec"]["cells"])
        for c, cell in enumerate(row)
        if cell is not None
    }


def sources(at, key, **chosen):
    found = at(key, "sourcesOf", **chosen)
    return {source["spec"]["label"]: read_cells(source) for source in found}


def test_sources_of_a_score(at):
    found = sources(at, "scores", batch=0, head=1, selected=3 * 5 + 2)
    assert found == {"q_rot[0,1]": {(3, e) for e in range(4)}, "k_rot[0,1]": {(2, e) for e in range(4)}}


def test_sources_of_a_weight(at):
    assert sources(at, "p", selected=3 * 5 + 2) == {"exps[0,0]": {(3, j) for j in range(5)}}


def test_sources_of_a_rotated_query(at):
    assert sources(at, "q_rot", selected=3 * 4 + 2) == {"q[0,0]": {(3, 2), (3, 3)}, "angle": {(3, 1)}}


def test_sources_of_an_embedding_gradient(at):
    a = tiny.VOCABULARY.index("a")
    found = sources(at, "dembedding", selected=a * 8 + 2)
    assert found == {
        "ids[0]": {(0, 0)},
        "ids[1]": {(0, 1), (0, 4)},
        "dx[0]": {(0, 2)},
        "dx[1]": {(1, 2), (4, 2)},
    }
    d = tiny.VOCABULARY.index("d")  # never an input
    assert sources(at, "dembedding", selected=d * 8) == {}


def test_sources_of_a_weight_gradient(at):
    found = sources(at, "dwq", selected=2 * 8 + 5)
    assert found == {
        "z[0]": {(t, 2) for t in range(5)},
        "z[1]": {(t, 2) for t in range(5)},
        "dq[0,1]": {(t, 1) for t in range(5)},
        "dq[1,1]": {(t, 1) for t in range(5)},
    }
    assert list(found) == ["z[0]", "z[1]", "dq[0,1]", "dq[1,1]"]  # as the formula names them


def test_what_was_not_read_is_no_cell(at):
    source = at("scores", "sourcesOf", selected=17)[0]
    assert source["spec"]["cells"][0][0] is None
    value = f"{TRACED['blocks.0.q_rot'].value[0, 0, 3, 1]:.2f}"
    assert source["spec"]["cells"][3][1]["name"] == f"q_rot[0,0,3,1] = {value}, go there"
    assert source["spec"]["cells"][3][1]["text"] == f"{TRACED['blocks.0.q_rot'].value[0, 0, 3, 1]:.2f}"
    assert at("scores", "cellIndex", source, 3 * 4 + 1) == [0, 0, 3, 1]


def test_arrow_keys_reach_all_that_was_read(at):
    """They go along a row or a column: what is read in one matrix is all of some rows in some columns."""
    for step in TRACED.steps:
        for cells in sources(at, step.key).values():
            rows, columns = ({cell[axis] for cell in cells} for axis in (0, 1))
            assert cells == {(row, column) for row in rows for column in columns}, step.key


def test_given_has_no_sources(at):
    assert at("wq", "sourcesOf") == []
    shown = f"= {TRACED['blocks.0.wq'].value[0, 1]:.4f}"
    found = at("wq", "entryFormula", selected=1)
    assert (found["symbols"], found["placed"], found["filled"]) == ("", "wq[0,1]", "")
    assert shown.startswith(found["result"])
    assert found["remarks"] == []
    assert at("wq", "termsOfEntry") is None


# ---- words ----


def test_sentences(at):
    sentence = "(state) => entrySentence(state, state.current, state.entry)"
    value = TRACED["blocks.0.scores"].value[0, 1, 3, 2]
    assert at("scores", sentence, head=1, selected=17) == (
        f"scores[0,1,3,2] = {value:.10f}: batch 0, head 1, query 3 “e”, key 2 “t”"
    )
    assert at("loss", sentence) == f"loss = {TRACED['loss'].value:.9f}"
    assert at("scores", "stepSentence") == (
        "Step 11 of 86, forward: model.attention computes it from q_rot, k_rot."
    )
    assert at("dscores", "stepSentence").startswith("Step 69 of 86, backward: ops.softmax_backward")
    assert at("wq", "stepSentence") == "Given, not computed."
    assert at("angle", "stepSentence") == (
        "Step 8 of 86, forward: model.rope computes it from its indices alone."
    )
    # a tensor of another layer is named with its layer
    assert at("blocks.1.scores", "stepSentence", model="deep", layer=1).endswith("from q_rot, k_rot.")
    assert at("blocks.1.x", "stepSentence", model="deep", layer=1).endswith("from blocks.0.y.")


def test_formula_of_a_score(at):
    q, k = (TRACED[f"blocks.0.{name}"].value for name in ("q_rot", "k_rot"))
    found = at("scores", "entryFormula", head=1, selected=17)
    short = lambda value: f"({value:.4f})" if value < 0 else f"{value:.4f}"  # noqa: E731
    pairs = zip(q[0, 1, 3], k[0, 1, 2], strict=True)
    products = " + ".join(f"{short(a)} · {short(b)}" for a, b in pairs)
    value = TRACED["blocks.0.scores"].value[0, 1, 3, 2]
    printed = sum(round(a, 4) * round(b, 4) for a, b in zip(q[0, 1, 3], k[0, 1, 2], strict=True)) / 2
    assert f"{printed:.4f}" != f"{value:.4f}"  # this score is one whose printed digits do not give it
    assert found == {
        "symbols": "scores[b,h,i,j] = (Σ_(e) q_rot[b,h,i,e] · k_rot[b,h,j,e]) / √dh",
        "placed": "scores[0,1,3,2] = (Σ_(e) q_rot[0,1,3,e] · k_rot[0,1,2,e]) / √4",
        "filled": f"= ({products}) / √4",
        "result": f"= {value:.4f}",
        "exact": f"more exactly {value:.10f}",
        "remarks": [
            "The printed numbers are rounded: calculating with them gives "
            f"{printed:.4f} instead of {value:.4f}."
        ],
    }


def test_remarks(at):
    assert at("masked", "entryFormula", selected=1 * 5 + 3)["remarks"] == ["Here 3 > 1."]
    assert at("masked", "entryFormula", selected=3 * 5 + 1)["remarks"] == ["Here 1 ≤ 3."]
    assert at("q_rot", "entryFormula", selected=4 * 4 + 3)["remarks"][0] == "Here 3 mod 2 ≠ 0."
    target = tiny.TARGET_IDS[0, 4]
    found = at("dlogits", "entryFormula", selected=4 * 9 + int(target))
    said = [f"targets[0,4] is {target}.", f"Here {target} = targets[0,4]."]
    assert found["remarks"][:2] == said
    assert target != 1
    found = at("dlogits", "entryFormula", selected=4 * 9 + 1)
    assert found["remarks"][:2] == [f"targets[0,4] is {target}.", "Here 1 ≠ targets[0,4]."]
    n = tiny.VOCABULARY.index("n")
    found = at("x", "entryFormula", selected=4 * 8 + 1)
    assert found["remarks"] == [f"ids[0,4] is {n}."]
    assert found["placed"] == f"x[0,4,1] = embedding[{n},1]"
    assert found["filled"] == found["exact"] == ""  # they would only repeat the result


def test_nothing_is_said_twice(at):
    """No line of a formula repeats another, for any entry."""
    every = """(state) => indices(state.current.shape).flatMap((index) => {
      const shown = traceState(globalThis.trace, { ...state, ...valuesAtEntry(state, state.step, index) });
      const { symbols, placed, filled, result, exact, remarks } = entryFormula(shown);
      const right = (text) => text.replace(/^[^=]*(= |$)/, "");
      const said = [symbols, placed, filled, result].map(right).concat(exact, remarks).filter(Boolean);
      return new Set(said).size === said.length ? [] : [[index, said]];
    })"""
    for step in TRACED.steps:
        assert at(step.key, every) == [], step.key


def test_formula_without_sources(at):
    found = at("angle", "entryFormula", selected=3 * 2 + 1)
    assert found["placed"] == "angle[3,1] = 3 · 10000^((-2) · 1 / 4)"
    assert (found["filled"], found["result"]) == ("", "= 0.03")
    found = at("masked", "entryFormula", selected=1 * 5 + 3)
    assert found["placed"] == "masked[0,0,1,3]"
    assert (found["filled"], found["result"], found["exact"]) == ("", "= -inf", "")


def test_what_is_printed_gives_the_number_or_it_is_said(at, arithmetic):
    """For every entry: calculate with the digits that are printed, as a reader would."""
    every = """(state) => indices(state.current.shape).map((index) => {
      const shown = traceState(globalThis.trace, { ...state, ...valuesAtEntry(state, state.step, index) });
      const { filled, placed, result, remarks } = entryFormula(shown);
      const numbers = /^[^=]* = [^[]*$/.test(placed) ? placed.replace(/^[^=]*/, "") : result;
      return [filled || numbers, result, remarks];
    })"""
    said = "The printed numbers are rounded: calculating with them gives {} instead of {}."
    told = 0
    for step in TRACED.steps:
        if step.formula is None:
            continue
        for filled, result, remarks in at(step.key, every):
            number = float(arithmetic(filled.removeprefix("= ")))
            shown = result.removeprefix("= ")
            [rounded] = [remark for remark in remarks if remark.startswith("The printed")] or [None]
            if rounded is None:
                decimals = len(shown.partition("e")[0].partition(".")[2])
                step_size = 10.0 ** (int(shown.partition("e")[2] or 0) - decimals)
                assert number == float(shown) or abs(number - float(shown)) <= 0.51 * step_size, filled
            else:
                told += 1
                other = rounded.split("gives ")[1].split(" instead")[0]
                assert float(other) == pytest.approx(number, rel=6e-4, abs=5.1e-5)
                assert rounded == said.format(other, shown)
                assert other != shown
    assert told > 500


def test_terms_of_a_score(at):
    found = at("scores", "termsOfEntry", head=1, selected=17)
    q, k = (TRACED[f"blocks.0.{name}"].value[0, 1] for name in ("q_rot", "k_rot"))
    products = q[3] * k[2]
    table = found["table"]
    assert [column["label"] for column in table["columns"]] == ["q_rot", "k_rot", "term", "so far"]
    assert [float(row[2]["text"]) for row in table["cells"]] == pytest.approx(products, abs=5e-5)
    assert [float(row[3]["text"]) for row in table["cells"]] == pytest.approx(np.cumsum(products), abs=5e-5)
    assert found["result"] == f"Together {products.sum():.4f}; the formula continues from there."
    assert found["title"] == "Terms of the sum (4)"


def test_terms_of_the_largest(at):
    found = at("row_max", "termsOfEntry", selected=3)
    row = TRACED["blocks.0.masked"].value[0, 0, 3]
    assert [row[0]["text"] for row in found["table"]["cells"]][4] == "-inf"
    chosen = [n for n, cells in enumerate(found["table"]["cells"]) if cells[0]["className"]]
    assert chosen == [row.argmax()]
    assert found["result"] == f"The largest is {row.max():.4f}."


def test_terms_whose_printed_digits_do_not_add_up(at):
    found = at("u", "termsOfEntry", selected=4 * 16 + 3)
    n, w1 = TRACED["blocks.0.n"].value[0, 4], TRACED["blocks.0.w1"].value[:, 3]
    printed = sum(float(row[2]["text"]) for row in found["table"]["cells"])
    assert f"{printed:.4f}" != f"{n @ w1:.4f}"
    assert found["result"] == (
        f"Together {n @ w1:.4f}, the number itself. "
        f"The printed terms add up to {printed:.4f}: they are rounded."
    )


def test_three_shares_of_a_gradient(at):
    found = at("dz", "termsOfEntry", selected=3 * 8 + 2)
    assert [row["label"] for row in found["table"]["rows"]] == [f"dz_{x}[0,3,2]" for x in "qkv"]


def test_a_single_term(at):
    c = tiny.VOCABULARY.index("c")  # once an input
    found = at("dembedding", "termsOfEntry", selected=c * 8 + 2)
    [row] = found["table"]["cells"]
    value = TRACED["dembedding"].value[c, 2]
    assert [cell["text"] for cell in row] == [f"{value:.4g}"] * 2
    assert [cell["className"] for cell in row] == [None, "labs-chosen-number"]  # the last sum so far


def test_no_terms(at):
    d = tiny.VOCABULARY.index("d")
    found = at("dembedding", "termsOfEntry", selected=d * 8 + 2)
    assert found["result"] == "No term contributes: the sum is exactly 0."
    assert found["table"]["rows"] == []
    assert at("dembedding", "entryFormula", selected=d * 8 + 2)["result"] == "= 0"


def test_text_to_copy_has_nothing_low(at):
    lines = at("logit_max", "entryText").splitlines()
    assert lines[2] == "logit_max[b,t] = max over v: logits[b,t,v]"
    lines = at("dembedding", "entryText", selected=8).splitlines()
    assert lines[2] == "dembedding[v,d] = Σ over b,t where ids[b,t] = v: dx[b,t,d]"


def test_text_to_copy(at):
    lines = at("scores", "entryText", head=1, selected=17).splitlines()
    formula = at("scores", "entryFormula", head=1, selected=17)
    assert lines[0].startswith("scores[0,1,3,2] = 0.26313615")
    assert lines[2] == "scores[b,h,i,j] = (Σ over e: q_rot[b,h,i,e] · k_rot[b,h,j,e]) / √dh"
    assert lines[3] == "scores[0,1,3,2] = (Σ over e: q_rot[0,1,3,e] · k_rot[0,1,2,e]) / √4"
    assert lines[4] == formula["filled"]
    assert lines[5] == f"{formula['result']} {formula['exact']}"
    assert lines[8:10] == ["Terms of the sum (4)", "e\tq_rot\tk_rot\tterm\tso far"]
    assert len(lines) == 8 + 2 + 4 + 1
    assert at("wq", "entryText").splitlines()[1] == "Given, not computed."
