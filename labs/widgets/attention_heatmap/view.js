// The widget AttentionHeatmap: scores and weights of one head, and how each entry comes about.
import { element, onFrame, setText } from "../shared/dom.js";
import { axisVerdict, cellSentence, entryDetails, heatmapSpecs, heatmapState } from "./state.js";
import { numberTable, tensorGrid, textTable } from "../shared/grid.js";
import { choice, fold, indexChoices, onChange, save, setAcross, tensorTitle } from "../shared/parts.js";

const AXES = ["keys", "queries", "heads"];

const GIVEN = ["q", "k", "shape", "mask", "labels", "rotated", "decimals"];
const LOOK = ["strings", "digits"];
const CHOSEN = ["batch", "head", "axis", "selected"];

function readModel(model) {
  const names = [...GIVEN, ...LOOK, ...CHOSEN];
  return heatmapState(Object.fromEntries(names.map((name) => [name, model.get(name)])));
}

/** The grids of the state, complete for `tensorGrid`. */
function allSpecs(state, pointed) {
  const { digits, selected } = state;
  const complete = (spec) => ({ ...spec, selected, marked: [pointed], digits });
  return heatmapSpecs(state).map(complete);
}

/** What the weights are: `P [2,2,5,5] (B,H,T,T), before RoPE`. */
function title({ B, H, T, rotated, texts }) {
  const tensor = { name: "P", role: "attention", shape: [B, H, T, T], axes: ["b", "h", "t", "t"] };
  return [tensorTitle(tensor), ", ", rotated ? texts.after_rope : texts.before_rope];
}

/** The elements of the widget, those by name that are filled later. */
function frame(state) {
  const part = (tag, className, ...children) => element(tag, { class: className }, ...children);
  const parts = {
    pickers: part("div", "labs-controls"),
    axes: part("div", "labs-controls"),
    matrices: part("div", "labs-matrices labs-pairs"),
    verdict: part("p", "labs-verdict"),
    status: element("p", { class: "labs-status", role: "status" }),
    steps: part("div", "labs-steps", part("p", "labs-nothing", state.texts.nothing_selected)),
  };
  const heading = part("p", "labs-title", ...title(state));
  parts.root = part("div", "labs-root labs-heatmap", heading, ...Object.values(parts));
  return parts;
}

/** The controls: what the reader does changes the model, `update(state)` shows what the model says. */
function addControls({ pickers, axes }, state, model) {
  const { B, H, labels, words, texts } = state;
  const leading = { axes: ["b", "h"], shape: [B, H], labels, words };
  const indices = indexChoices(pickers, leading, ["batch", "head"], model);
  const options = [texts.along_keys, texts.along_queries, texts.along_heads];
  const along = choice(axes, texts.along, options, (index) => save(model, { axis: AXES[index] }));
  return {
    update(now) {
      indices.update(now);
      along.update(AXES.indexOf(now.axis));
    },
  };
}

/** One step of how an entry comes about: a title, a table of at most so many rows, a line of arithmetic. */
function addStep(el, rows) {
  const heading = element("p", { class: "labs-step-title" });
  const result = element("p", { class: "labs-step-result" });
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

function render({ model, el }) {
  let state = readModel(model);
  let pointed = -1; // under the pointer or focused: known to this view alone

  const parts = frame(state);
  el.append(parts.root);

  const handlers = {
    point(id) {
      pointed = id;
      for (const grid of grids) grid.mark([id]);
      drawStatus();
    },
    select: (id) => save(model, { selected: id }),
  };
  const controls = addControls(parts, state, model);
  setAcross(parts.matrices, model.get("across"));
  const grids = allSpecs(state, pointed).map((spec) => tensorGrid(parts.matrices, spec, handlers));
  const scoreStep = addStep(parts.steps, state.dh);
  const weightStep = addStep(parts.steps, Math.max(state.T, state.H));
  const text = fold(parts.root, state.texts.as_text);

  function drawStatus() {
    const shown = pointed >= 0 ? pointed : state.selected;
    setText(parts.status, shown >= 0 ? cellSentence(state, shown) : state.texts.hint);
  }

  /** The steps behind the selected entry; returns their tables. */
  function drawSteps() {
    parts.steps.classList.toggle("labs-empty", state.selected < 0);
    if (state.selected < 0) return [];
    const { score, weight } = entryDetails(state);
    scoreStep.update(score);
    weightStep.update(weight);
    return [score.table, weight.table];
  }

  const draw = onFrame(() => {
    state = readModel(model);
    const specs = allSpecs(state, pointed);
    grids.forEach((grid, index) => grid.update(specs[index]));
    controls.update(state);
    setText(parts.verdict, axisVerdict(state));
    parts.verdict.classList.toggle("labs-is-wrong", state.axis !== "keys");
    text.update([...specs, ...drawSteps()].map(textTable).join("\n\n"));
    drawStatus();
  });
  const ignore = onChange(model, CHOSEN, draw);
  draw();

  return () => {
    ignore();
    draw.cancel();
    for (const grid of grids) grid.destroy();
    parts.root.remove();
  };
}

export default { render };
