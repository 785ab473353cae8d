// The widget AttentionHeatmap: scores and weights of one head, and how each entry comes about.
import { element, part, setText } from "../shared/dom.js";
import { numberTable, textTable } from "../shared/grid.js";
import { choice, fold, indexChoices, save, setAcross, tensorTitle } from "../shared/parts.js";
import { mountView } from "../shared/view.js";
import { axisVerdict, cellSentence, entryDetails, heatmapSpecs, heatmapState } from "./state.js";

const AXES = ["keys", "queries", "heads"];

const given = ["q", "k", "shape", "mask", "labels", "rotated", "decimals", "digits", "across"];
const chosen = ["batch", "head", "axis", "selected"];

/** What the weights are: `P [2,2,5,5] (B,H,T,T), before RoPE`. */
function title({ B, H, T, rotated, strings }) {
  const tensor = { name: "P", role: "attention", shape: [B, H, T, T], axes: ["b", "h", "t", "t"] };
  return [tensorTitle(tensor), ", ", rotated ? strings.own.after_rope : strings.own.before_rope];
}

/** The elements of the widget, those by name that are filled later. */
function frame(state, status) {
  const parts = {
    pickers: part("div", "labs-controls"),
    axes: part("div", "labs-controls"),
    matrices: part("div", "labs-matrices labs-pairs"),
    verdict: part("p", "labs-verdict"),
    status,
    steps: part("div", "labs-steps", part("p", "labs-nothing", state.strings.own.nothing_selected)),
  };
  const heading = part("p", "labs-title", ...title(state));
  parts.root = part("div", "labs-root labs-heatmap", heading, ...Object.values(parts));
  return parts;
}

/** The controls: what the reader does changes the model, `update(state)` shows what the model says. */
function addControls({ pickers, axes }, state, model) {
  const { B, H, labels, strings } = state;
  const leading = { axes: ["b", "h"], shape: [B, H], labels, strings };
  const indices = indexChoices(pickers, leading, ["batch", "head"], model);
  const { own } = strings;
  const options = [own.along_keys, own.along_queries, own.along_heads];
  const axis = choice(axes, own.along, options, (index) => save(model, { axis: AXES[index] }));
  return {
    update(now) {
      indices.update(now);
      axis.update(AXES.indexOf(now.axis));
    },
  };
}

/** One step of how an entry comes about: a title, a table of at most so many rows, a line of arithmetic. */
function addStep(el, rows) {
  const heading = part("p", "labs-step-title");
  const result = part("p", "labs-step-result");
  const box = element("div", { class: "labs-step-box", style: `--labs-rows:${rows}` }, heading);
  const table = numberTable(box);
  box.append(result);
  el.append(box);
  return {
    update(step) {
      setText(heading, step.title);
      table.update(step.table);
      setText(result, step.result);
    },
  };
}

function build({ model, state, status, addGrids }) {
  const parts = frame(state, status);
  const controls = addControls(parts, state, model);
  const select = (id) => save(model, { selected: id });
  addGrids(parts.matrices, heatmapSpecs, { sentence: cellSentence, select, linked: true });
  setAcross(parts.matrices, state.across);
  const scoreStep = addStep(parts.steps, state.dh);
  const weightStep = addStep(parts.steps, Math.max(state.T, state.H));
  const text = fold(parts.root, state.strings.own.as_text);

  /** The steps behind the selected entry; returns their tables. */
  function drawSteps(now) {
    parts.steps.classList.toggle("labs-empty", now.selected < 0);
    if (now.selected < 0) return [];
    const { score, weight } = entryDetails(now);
    scoreStep.update(score);
    weightStep.update(weight);
    return [score.table, weight.table];
  }

  return {
    root: parts.root,
    update(now, specs) {
      controls.update(now);
      setText(parts.verdict, axisVerdict(now));
      parts.verdict.classList.toggle("labs-is-wrong", now.axis !== "keys");
      text.update([...specs, ...drawSteps(now)].map(textTable).join("\n\n"));
    },
  };
}

export default { render: (mount) => mountView(mount, { given, chosen, stateOf: heatmapState, build }) };
