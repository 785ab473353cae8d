// The widget MaskExplorer: the model with one layer, live, under a mask that the reader makes.
import { element, fill, part, setAttribute, setText } from "../shared/dom.js";
import { textTable } from "../shared/grid.js";
import { range } from "../shared/numbers.js";
import { button, checkbox, fold, indexChoices, save, setAcross, tensorTitle } from "../shared/parts.js";
import { mountView } from "../shared/view.js";
import { leakVerdict, leaking, logitSentence, maskSpecs, maskState, movedText, movedVerdict } from "./state.js";
import { flip, outputSentence, pairSentence, positionWords, reportOf, resultSpecs, targetText } from "./state.js";

const inputs = ["params", "settings", "shape", "ids", "last_targets", "vocabulary"];
const given = [...inputs, "limit", "decimals", "digits", "across"];
const chosen = ["batch", "head", "causal", "same_position", "padding", "flipped", "tokens"];

/** The elements of the widget, those by name that are filled later, around the rest. */
function frame({ B, T, V, strings }, status) {
  const parts = {
    pickers: part("div", "labs-controls"),
    switches: part("div", "labs-controls"),
    text: part("div", "labs-grid-box labs-text-box"),
    moved: part("p", "labs-moved-verdict"),
    pairs: part("div", "labs-matrices labs-pairs"),
    verdict: part("p", "labs-verdict"),
    status,
    results: part("div", "labs-matrices labs-pairs"),
    report: part("div", "labs-report"),
  };
  const tensor = { name: "logits", role: "logits", shape: [B, T, V], axes: ["b", "t", "v"] };
  const title = part("p", "labs-title", tensorTitle(tensor), ", ", strings.own.layer);
  parts.root = part("div", "labs-root labs-mask-explorer", title, ...Object.values(parts));
  return parts;
}

/** The controls: what the reader does changes the model, `update(state)` shows what the model says. */
function addControls({ pickers, switches }, state, model) {
  const { B, H, T, labels, strings } = state;
  const { own } = strings;
  const leading = { axes: ["b", "h"], shape: [B, H], labels, strings };
  const indices = indexChoices(pickers, leading, ["batch", "head"], model);
  const causal = checkbox(switches, own.causal, (checked) => save(model, { causal: checked }));
  const same = checkbox(switches, own.same_position, (checked) => save(model, { same_position: checked }));
  button(switches, own.reset, () => {
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
  const { T, vocabulary, strings } = state;
  const { own } = strings;
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
  const labelled = boxes.map((box) => element("label", {}, box));
  const targets = positions.map(() => element("span", { translate: "no" }));
  const moved = positions.map(() => element("span", { translate: "no" }));
  const line = (name, children) =>
    element("tr", {}, element("th", { scope: "row" }, name), ...children.map((child) => element("td", {}, child)));
  const head = positions.map((t) => element("th", { scope: "col" }, String(t)));
  const table = element(
    "table",
    { class: "labs-grid labs-text", "aria-label": own.text_label },
    element("thead", {}, element("tr", {}, element("td", { class: "labs-corner" }, "t→"), ...head)),
    element(
      "tbody",
      {},
      line(own.row_token, tokens),
      line(own.row_padding, labelled),
      line(own.row_target, targets),
      line(own.row_moved, moved),
    ),
  );
  el.append(table);
  return {
    update(now) {
      for (const t of positions) {
        const position = positionWords(now, t);
        tokens[t].selectedIndex = now.text[t];
        setAttribute(tokens[t], "aria-label", fill(own.token_at, { position }));
        tokens[t].classList.toggle("labs-changed", now.text[t] !== now.stored[t]);
        boxes[t].checked = now.padded[t];
        setAttribute(boxes[t], "aria-label", fill(own.padding_at, { position }));
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

function build({ model, state, status, addGrids }) {
  const parts = frame(state, status);
  const controls = addControls(parts, state, model);
  const text = addText(parts.text, state, model);
  const numbers = fold(parts.root, state.strings.own.as_text);

  const select = (id) => save(model, { flipped: flip(model.get("flipped"), id) });
  addGrids(parts.pairs, maskSpecs, { sentence: pairSentence, select, linked: true });
  const sentence = (now, id, n) => [outputSentence, logitSentence][n](now, id);
  addGrids(parts.results, resultSpecs, { sentence });
  setAcross(parts.pairs, state.across.pairs);
  setAcross(parts.results, state.across.results);

  return {
    root: parts.root,
    update(now, specs) {
      controls.update(now);
      text.update(now);
      setText(parts.moved, movedVerdict(now));
      setText(parts.verdict, leakVerdict(now));
      parts.verdict.classList.toggle("labs-is-wrong", leaking(now));
      drawReport(parts.report, reportOf(now));
      parts.report.classList.toggle("labs-is-wrong", now.empty.length > 0);
      numbers.update(specs.map(textTable).join("\n\n"));
    },
  };
}

export default { render: (mount) => mountView(mount, { given, chosen, stateOf: maskState, build }) };
