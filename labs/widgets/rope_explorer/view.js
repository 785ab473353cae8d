// The widget RopeExplorer: a query and a key turned by their positions, and the score that comes of it.
import { element, fill, onFrame, setAttribute, setText, svgElement } from "../shared/dom.js";
import { format, range } from "../shared/numbers.js";
import { tensorGrid, textTable } from "../shared/grid.js";
import { checkbox, choice, fold, onChange, save, slider, tensorTitle } from "../shared/parts.js";
import { LAST_POSITION, ropeState, scoreCurve, slide } from "./state.js";
import { angleRows, cellSentence, pairOfCell, significant, turnedSpec, verdictOf } from "./state.js";
import { circleBox, curveBox, drawCircle, drawCurve } from "./pictures.js";

const GIVEN = ["q", "k", "v", "bases", "limit", "strings", "digits"];
const CHOSEN = ["m", "n", "base", "pair", "together", "mixed", "rotate_values"];

function readModel(model) {
  return ropeState(Object.fromEntries([...GIVEN, ...CHOSEN].map((name) => [name, model.get(name)])));
}

const vectorTitle = (name, width) => tensorTitle({ name, role: name, shape: [width], axes: ["dh"] });

/** The elements of the widget: those that are filled later by name, around the rest. */
function frame({ width, texts }) {
  const part = (tag, className, ...children) => element(tag, { class: className }, ...children);
  const picture = (className, viewBox) => svgElement("svg", { class: className, viewBox, role: "img" });
  const parts = {
    sliders: part("div", "labs-sliders"),
    choices: part("div", "labs-controls"),
    breakers: part("div", "labs-controls"),
    circle: picture("labs-circle", circleBox),
    curve: picture("labs-score-curve", curveBox),
    angles: part("table", "labs-angles"),
    verdict: element("div", { class: "labs-rope-verdict", role: "status" }),
    grid: part("div", "labs-turned"),
    status: element("p", { class: "labs-status", role: "status" }),
  };
  parts.root = part(
    "div",
    "labs-root labs-rope",
    part("p", "labs-title", vectorTitle("q", width), " ", vectorTitle("k", width)),
    part("p", "labs-rope-intro", texts.intro),
    parts.sliders,
    parts.choices,
    parts.breakers,
    part("div", "labs-pictures", parts.circle, parts.curve),
    part("div", "labs-reading", parts.angles, parts.verdict),
    parts.grid,
    parts.status,
  );
  return parts;
}

/** The controls: what the reader does changes the model, `update(state)` shows what the model says. */
function addControls(parts, { width, bases, texts }, model, draw) {
  const slideTo = (name) => (position) => {
    const now = Object.fromEntries(["m", "n", "together"].map((each) => [each, model.get(each)]));
    save(model, slide(now, name, position));
    draw(); // a slider that was stopped by the other one goes back, though the model did not change
  };
  const set = (name) => (value) => save(model, { [name]: value });
  const positions = [0, LAST_POSITION];
  const m = slider(parts.sliders, texts.query_position, positions, slideTo("m"));
  const n = slider(parts.sliders, texts.key_position, positions, slideTo("n"));
  const together = checkbox(parts.choices, texts.together, set("together"));
  const base = choice(parts.choices, texts.base, bases.map(String), (index) =>
    save(model, { base: bases[index] }),
  );
  const pair = choice(parts.choices, texts.pair, range(width / 2).map(String), set("pair"));
  const mixed = checkbox(parts.breakers, texts.mixed, set("mixed"));
  const values = checkbox(parts.breakers, texts.rotate_values, set("rotate_values"));
  return {
    update(state) {
      m.update(state.m);
      n.update(state.n);
      together.update(state.together);
      base.update(bases.indexOf(state.base));
      pair.update(state.pair);
      mixed.update(state.mixed);
      values.update(state.rotate_values);
    },
  };
}

/** The rows of the table of angles as elements. */
function angleTable(state) {
  const { pair, speed, texts } = state;
  const head = (text) => element("th", { scope: "col" }, text);
  const name = (row) => {
    const distance = row.name === "distance";
    const style = distance ? null : `color:var(--labs-role-${row.name})`;
    return element("th", { scope: "row", style }, `${distance ? "n - m" : row.name}: ${row.turn}`);
  };
  const cells = (row) => [row.radians, row.degrees].map((text) => element("td", {}, text));
  const title = fill(texts.pair_speed, { pair, speed: significant(speed) });
  return [
    element("thead", {}, element("tr", {}, head(title), head(texts.radians), head(texts.degrees))),
    element("tbody", {}, ...angleRows(state).map((row) => element("tr", {}, name(row), ...cells(row)))),
  ];
}

/** All numbers as text: the grid, then the curve. */
function asText(state, spec) {
  const { m, layouts, texts } = state;
  const curve = scoreCurve(state, m, 0, LAST_POSITION, layouts.k).map(
    ([distance, score]) => `${String(distance).padStart(5)}  ${format(score, 4).padStart(10)}`,
  );
  return [textTable(spec), [fill(texts.curve_as_text, { m }), ...curve].join("\n")].join("\n\n");
}

function render({ model, el }) {
  let state = readModel(model);
  let pointed = -1; // under the pointer or focused: known to this view alone
  let said = ""; // the verdict as it is drawn

  const fullSpec = () => ({ ...turnedSpec(state), digits: state.digits });
  const parts = frame(state);
  el.append(parts.root);
  const text = fold(parts.root, state.texts.as_text);

  const grid = tensorGrid(parts.grid, fullSpec(), {
    point(id) {
      pointed = id;
      drawStatus();
    },
    select(id) {
      if (id >= 0) save(model, { pair: pairOfCell(state, id) });
    },
  });

  function drawStatus() {
    setText(parts.status, pointed >= 0 ? cellSentence(state, pointed) : state.texts.hint);
  }

  function drawVerdict() {
    const verdict = verdictOf(state);
    if (JSON.stringify(verdict) === said) return; // a screen reader says only what is new
    said = JSON.stringify(verdict);
    const { score, findings } = verdict;
    const line = ({ text, wrong }) => element("p", { class: wrong ? "labs-is-wrong" : null }, text);
    parts.verdict.replaceChildren(element("p", {}, element("strong", {}, score)), ...findings.map(line));
  }

  const draw = onFrame(() => {
    state = readModel(model);
    const spec = fullSpec();
    const { texts, pair, m, n, score } = state;
    controls.update(state);
    drawCircle(parts.circle, state);
    drawCurve(parts.curve, state);
    setAttribute(parts.circle, "aria-label", fill(texts.circle_alt, { pair }));
    setAttribute(parts.curve, "aria-label", fill(texts.curve_alt, { distance: n - m, score: format(score, 4) }));
    parts.angles.replaceChildren(...angleTable(state));
    drawVerdict();
    grid.update(spec);
    text.update(asText(state, spec));
    drawStatus();
  });
  const controls = addControls(parts, state, model, draw);
  const ignore = onChange(model, CHOSEN, draw);
  draw();

  return () => {
    ignore();
    draw.cancel();
    grid.destroy();
    parts.root.remove();
  };
}

export default { render };
