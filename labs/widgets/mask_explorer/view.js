// The widget MaskExplorer: the model with one layer, live, under a mask that the reader makes.
import { element, fill, onFrame, setAttribute, setText } from "../shared/dom.js";
import { leakVerdict, leaking, logitSentence, maskSpecs, maskState, movedText, movedVerdict } from "./state.js";
import { outputSentence, pairSentence, positionWords, reportOf, resultSpecs, targetText, turnOver } from "./state.js";
import { tensorGrid, textTable } from "../shared/grid.js";
import { range } from "../shared/numbers.js";
import { button, checkbox, fold, indexChoices, onChange, save, setAcross, tensorTitle } from "../shared/parts.js";

const GIVEN = ["params", "settings", "shape", "ids", "last_targets", "vocabulary", "limit", "decimals"];
const LOOK = ["strings", "digits"];
const CHOSEN = ["batch", "head", "causal", "same_position", "padding", "flipped", "tokens"];

function readModel(model) {
  const names = [...GIVEN, ...LOOK, ...CHOSEN];
  return maskState(Object.fromEntries(names.map((name) => [name, model.get(name)])));
}

/** The grids of pairs, complete for `tensorGrid`. */
function pairSpecs(state, marked) {
  const { digits } = state;
  return maskSpecs(state).map((spec) => ({ ...spec, selected: -1, marked: [marked], digits }));
}

/** The grids of outputs and logits, complete for `tensorGrid`. */
function outputSpecs(state) {
  const { digits } = state;
  return resultSpecs(state).map((spec) => ({ ...spec, selected: -1, marked: [], digits }));
}

/** The elements of the widget, those by name that are filled later, around the rest. */
function frame({ B, T, V, texts }) {
  const part = (tag, className, ...children) => element(tag, { class: className }, ...children);
  const parts = {
    pickers: part("div", "labs-controls"),
    switches: part("div", "labs-controls"),
    text: part("div", "labs-grid-box labs-text-box"),
    moved: part("p", "labs-moved-verdict"),
    pairs: part("div", "labs-matrices labs-pairs"),
    verdict: part("p", "labs-verdict"),
    status: element("p", { class: "labs-status", role: "status" }),
    results: part("div", "labs-matrices labs-pairs"),
    report: part("div", "labs-report"),
  };
  const tensor = { name: "logits", role: "logits", shape: [B, T, V], axes: ["b", "t", "v"] };
  const title = part("p", "labs-title", tensorTitle(tensor), ", ", texts.layer);
  parts.root = part("div", "labs-root labs-mask-explorer", title, ...Object.values(parts));
  return parts;
}

/** The controls: what the reader does changes the model, `update(state)` shows what the model says. */
function addControls({ pickers, switches }, state, model) {
  const { B, H, T, labels, words, texts } = state;
  const leading = { axes: ["b", "h"], shape: [B, H], labels, words };
  const indices = indexChoices(pickers, leading, ["batch", "head"], model);
  const causal = checkbox(switches, texts.causal, (checked) => save(model, { causal: checked }));
  const same = checkbox(switches, texts.same_position, (checked) => save(model, { same_position: checked }));
  button(switches, texts.reset, () => {
    const mask = { causal: true, padding: Array(B * T).fill(false), flipped: [] };
    save(model, { ...mask, same_position: false, tokens: [...model.get("ids")] });
  });
  return {
    update(now) {
      indices.update(now);
      causal.update(now.causal);
      same.update(now.same_position);
    },
  };
}

/** The text as a table: a token to choose and a box for padding at each position, the targets, what moved. */
function addText(el, state, model) {
  const { T, texts, vocabulary } = state;
  const change = (name, t, value) => {
    const place = model.get("batch") * T + t;
    save(model, { [name]: model.get(name).with(place, value) });
  };
  const positions = range(T);
  const tokens = positions.map((t) => {
    const options = vocabulary.map((token) => element("option", {}, token));
    // data-lm-suppress-shortcuts: in JupyterLab the arrow keys choose a token, not a cell of the notebook
    const list = element("select", { "data-lm-suppress-shortcuts": "true" }, ...options);
    list.addEventListener("change", () => change("tokens", t, list.selectedIndex));
    return list;
  });
  const boxes = positions.map((t) => {
    const box = element("input", { type: "checkbox" });
    box.addEventListener("change", () => change("padding", t, box.checked));
    return box;
  });
  const targets = positions.map(() => element("span", { translate: "no" }));
  const moved = positions.map(() => element("span", { translate: "no" }));
  const line = (name, children) =>
    element("tr", {}, element("th", { scope: "row" }, name), ...children.map((child) => element("td", {}, child)));
  const head = positions.map((t) => element("th", { scope: "col" }, String(t)));
  const table = element(
    "table",
    {
      class: "labs-grid labs-text",
      "aria-label": texts.text_label,
    },
    element("thead", {}, element("tr", {}, element("td", { class: "labs-corner" }, "t→"), ...head)),
    element(
      "tbody",
      {},
      line(texts.row_token, tokens),
      line(
        texts.row_padding,
        boxes.map((box) => element("label", {}, box)),
      ),
      line(texts.row_target, targets),
      line(texts.row_moved, moved),
    ),
  );
  el.append(table);
  return {
    update(now) {
      for (const t of positions) {
        const position = positionWords(now, t);
        tokens[t].selectedIndex = now.text[t];
        setAttribute(tokens[t], "aria-label", fill(texts.token_at, { position }));
        tokens[t].classList.toggle("labs-changed", now.text[t] !== now.stored[t]);
        boxes[t].checked = now.padded[t];
        setAttribute(boxes[t], "aria-label", fill(texts.padding_at, { position }));
        setText(targets[t], targetText(now, t));
        setText(moved[t], movedText(now, t));
        moved[t].classList.toggle("labs-has-moved", now.moved[t] !== 0);
      }
    },
  };
}

/** What happens in a row with nothing to read, or what to try. */
function drawReport(el, { title, steps }) {
  const items = steps.map((step) => element("li", {}, step));
  el.replaceChildren(element("p", { class: "labs-report-title" }, title), element("ol", {}, ...items));
}

function render({ model, el }) {
  let state = readModel(model);
  let pointed = -1; // the pair under the pointer or focused, and
  let said = null; // what is said of what is pointed at, from the state: known to this view alone

  const parts = frame(state);
  el.append(parts.root);
  const controls = addControls(parts, state, model);
  const text = addText(parts.text, state, model);
  const numbers = fold(parts.root, state.texts.as_text);

  const say = (sentence) => (id) => {
    said = id < 0 ? null : (now) => sentence(now, id);
    drawStatus();
  };
  const pairHandlers = {
    point(id) {
      pointed = id;
      for (const grid of pairGrids) grid.mark([id]);
      say(pairSentence)(id);
    },
    select: (id) => save(model, { flipped: turnOver(model.get("flipped"), id) }),
  };
  setAcross(parts.pairs, model.get("across").pairs);
  setAcross(parts.results, model.get("across").results);
  const pairGrids = pairSpecs(state, pointed).map((spec) => tensorGrid(parts.pairs, spec, pairHandlers));
  const sentences = [outputSentence, logitSentence];
  const resultGrids = outputSpecs(state).map((spec, index) =>
    tensorGrid(parts.results, spec, { point: say(sentences[index]), select: () => {} }),
  );

  function drawStatus() {
    setText(parts.status, said === null ? state.texts.hint : said(state));
  }

  const draw = onFrame(() => {
    state = readModel(model);
    const [pairs, results] = [pairSpecs(state, pointed), outputSpecs(state)];
    pairGrids.forEach((grid, index) => grid.update(pairs[index]));
    resultGrids.forEach((grid, index) => grid.update(results[index]));
    controls.update(state);
    text.update(state);
    setText(parts.moved, movedVerdict(state));
    setText(parts.verdict, leakVerdict(state));
    parts.verdict.classList.toggle("labs-is-wrong", leaking(state));
    drawReport(parts.report, reportOf(state));
    parts.report.classList.toggle("labs-is-wrong", state.empty.length > 0);
    numbers.update([...pairs, ...results].map(textTable).join("\n\n"));
    drawStatus();
  });
  const ignore = onChange(model, CHOSEN, draw);
  draw();

  return () => {
    ignore();
    draw.cancel();
    for (const grid of [...pairGrids, ...resultGrids]) grid.destroy();
    parts.root.remove();
  };
}

export default { render };
