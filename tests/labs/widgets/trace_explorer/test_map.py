"""The map of the TraceExplorer: which stops it has, in which order, and how they look."""

import pytest

from labs.llm import tiny
from labs.widgets import TraceExplorer

WIDGET = TraceExplorer(tiny.params(), tiny.CONFIG, tiny.INPUT_IDS, tiny.TARGET_IDS, tiny.VOCABULARY)

STEPS = {step["name"]: place for place, step in enumerate(WIDGET.steps)}

AT = """((held, name, ...more) => {
  const trace = readTrace({ steps: held.steps, numbers: new DataView(new ArrayBuffer(0)) });
  const step = held.steps.findIndex((each) => each.name === name);
  return (%s)(traceState(trace, { ...held, step }), ...more);
})"""


@pytest.fixture(scope="module")
def at(javascript):
    """A function `at(name, function, *more)`: the result for the state at a step."""
    call = javascript("trace_explorer/map.js")
    held = {name: getattr(WIDGET, name) for name in ("steps", "sizes", "layers", "labels", "strings")}
    held |= {"layer": 0, "batch": 0, "head": 0, "selected": -1, "trail": []}
    return lambda name, function, *more: call(AT % function, held, name, *more)


def parts(lanes):
    """The names of the stops of each part, in the order of the map."""
    names = list(STEPS)
    return {
        part["part"]: [names[stop["place"]] for stop in part["stops"]]
        for lane in lanes
        for part in lane["parts"]
    }


def test_forward_what_is_given_stands_before_what_reads_it(at):
    lanes = at("x", "mapLanes")
    assert [lane["kind"] for lane in lanes] == ["stream", "branch", "add", "branch", "add", "stream"]
    found = parts(lanes)
    assert found["embedding"] == ["ids", "embedding", "x"]
    assert found["attn_norm"] == ["attn_inv_rms", "attn_unit", "attn_norm", "z"]
    assert " ".join(found["attention"]) == (
        "wq q wk k wv v angle q_rot k_rot scores masked row_max exps p o joined wo attn_out"
    )
    assert " ".join(found["swiglu"]) == "w1 u w3 up sigmoid gate hidden w2 ffn_out"
    assert (found["attn_add"], found["ffn_add"]) == (["r"], ["y"])
    assert " ".join(found["loss"]) == "logit_max logit_exps log_probs probs targets nll loss"


def test_forward_every_step_has_a_stop(at):
    stops = [
        stop["place"] for lane in at("x", "mapLanes") for part in lane["parts"] for stop in part["stops"]
    ]
    assert sorted(stops) == [n for n, step in enumerate(WIDGET.steps) if step["phase"] != "backward"]


def test_backward_the_walk_goes_from_the_bottom_up(at):
    lanes = at("dscores", "mapLanes")
    stops = [stop["place"] for lane in lanes for part in lane["parts"] for stop in part["stops"]]
    backward = [place for place in stops if WIDGET.steps[place]["phase"] == "backward"]
    assert sorted(backward) == [n for n, step in enumerate(WIDGET.steps) if step["phase"] == "backward"]
    found = parts(lanes)
    assert found["attn_add"][0] == "dr"
    assert found["unembedding"] == ["dunembedding", "dlogits"]
    order = [stop for stop in found["attention"] if stop in ("dq", "dscores", "dp", "do", "dattn_out")]
    assert order == ["dq", "dscores", "dp", "do", "dattn_out"]  # computed from right to left


def test_backward_a_gradient_stands_over_its_tensor(at):
    names = list(STEPS)
    under = {
        names[stop["place"]]: None if stop["under"] is None else names[stop["under"]]
        for lane in at("dscores", "mapLanes")
        for part in lane["parts"]
        for stop in part["stops"]
    }
    assert (under["dscores"], under["dwq"], under["dx"]) == ("scores", "wq", "x")
    assert under["dz_q"] is None  # a share of the gradient of z
    assert under["attn_mean"] is None
    # a tensor without a gradient that a gradient reads has a stop of its own
    assert {"ids", "targets", "angle", "sigmoid", "attn_inv_rms", "probs"} <= under.keys()
    assert not {"row_max", "exps", "logit_exps", "scores"} & under.keys()


def look(at, name, stop, under=None):
    found = {"place": STEPS[stop], "under": None if under is None else STEPS[under]}
    return {key for key, value in at(name, "stopLook", found).items() if value}


def test_how_stops_look(at):
    assert look(at, "scores", "scores") == {"current"}
    assert look(at, "scores", "q_rot") == {"source", "done"}
    assert look(at, "scores", "v") == {"done"}
    assert look(at, "scores", "p") == set()
    assert look(at, "q", "wq") == {"source"}  # given, not computed
    assert look(at, "dscores", "dp", "p") == {"source", "underSource", "done"}
    assert look(at, "dq_rot", "dk_rot", "k_rot") == {"underSource"}


@pytest.mark.parametrize(
    ("name", "stop", "under", "label"),
    [
        ("x", "attn_inv_rms", None, "attn_inv_rms (B,T)"),
        ("z", "attn_inv_rms", None, "attn_inv_rms (B,T), computed already"),
        ("scores", "scores", None, "scores (B,H,T,T), current"),
        ("scores", "q_rot", None, "q_rot (B,H,T,dh), read by the current one, computed already"),
        (
            "dscores",
            "dp",
            "p",
            "dp (B,H,T,T), read by the current one, p is read by the current one, computed already",
        ),
        ("x", "loss", None, "loss"),
    ],
)
def test_stops_have_full_names(at, name, stop, under, label):
    found = {"place": STEPS[stop], "under": None if under is None else STEPS[under]}
    assert at(name, "(state, stop) => stopLabel(state, stop, stopLook(state, stop))", found) == label


def test_no_two_stops_of_a_pass_have_one_name(at):
    labels = """(state) => mapLanes(state).flatMap(({ parts }) => parts).flatMap(({ stops }) => stops)
      .map((stop) => stopLabel(state, stop, {}))"""
    for name in ("x", "dscores"):
        found = at(name, labels)
        assert len(set(found)) == len(found)


@pytest.mark.parametrize(
    ("name", "stop", "line"),
    [
        ("x", "scores", "2,2,5,5"),
        ("x", "loss", ""),
        ("dx", "dz", "of z"),
        ("dx", "dz_v", "of z"),  # a share of it
        ("dx", "dr_branch", "of r"),
        ("dx", "dwq", "of wq"),
        ("dx", "attn_mean", ""),  # no gradient
        ("dx", "angle", ""),
    ],
)
def test_small_lines_are_of_one_kind(at, name, stop, line):
    assert at(name, "smallLine", {"place": STEPS[stop], "under": None}) == line


def test_the_pass_of_what_is_given(at):
    assert at("wq", "mapPhase") == at("scores", "mapPhase") == "forward"
    assert at("dwq", "mapPhase") == "backward"
