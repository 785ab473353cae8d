// The widget RopeExplorer: a query and a key rotated by their positions, and the score that comes of it.
import { element, fill, part, setAttribute, svgElement } from "../shared/dom.js";
import { textTable } from "../shared/grid.js";
import { format, range } from "../shared/numbers.js";
import { checkbox, choice, fold, save, slider, tensorTitle } from "../shared/parts.js";
import { mountView } from "../shared/view.js";
import { circleBox, curveBox, drawCircle, drawCurve } from "./pictures.js";
import { LAST_POSITION, ropeState, scoreCurve, slide } from "./state.js";
import { angleRows, cellSentence, pairOfCell, significant, rotatedSpec, verdictOf } from "./state.js";

const given = ["q", "k", "v", "bases", "limit", "digits"];
const chosen = ["m", "n", "base", "pair", "together", "mixed", "rotate_values"];

const vectorTitle = (name, width) => tensorTitle({ name, role: name, shape: [width], axes: ["dh"] });

/** The elements of the widget: those that are filled later by name, around the rest. */
function frame({ width, strings }, status) {
  const picture = (className, viewBox) => svgElement("svg", { class: className, viewBox, role: "img" });
  const parts = {
    sliders: part("div", "labs-sliders"),
    choices: part("div", "labs-controls"),
    breakers: part("div", "labs-controls"),
    circle: picture("labs-circle", circleBox),
    curve: picture("labs-score-curve", curveBox),
    angles: part("table", "labs-angles"),
    verdict: element("div", { class: "labs-rope-verdict", role: "status" }),
    grid: part("div", "labs-rotated"),
  };
  parts.root = part(
    "div",
    "labs-root labs-rope",
    part("p", "labs-title", vectorTitle("q", width), " ", vectorTitle("k", width)),
    part("p", "labs-rope-intro", strings.own.intro),
    parts.sliders,
    parts.choices,
    parts.breakers,
    part("div", "labs-pictures", parts.circle, parts.curve),
    part("div", "labs-reading", parts.angles, parts.verdict),
    parts.grid,
    status,
  );
  return parts;
}

/** The controls: what the reader does changes the model, `update(state)` shows what the model says. */
function addControls(parts, { width, bases, strings }, model, draw) {
  const { own } = strings;
  const slideTo = (name) => (position) => {
    const now = { m: model.get("m"), n: model.get("n"), together: model.get("together") };
    save(model, slide(now, name, position));
    draw(); // a slider that was stopped by the other one goes back, though the model did not change
  };
  const set = (name) => (value) => save(model, { [name]: value });
  const m = slider(parts.sliders, own.query_position, [0, LAST_POSITION], slideTo("m"));
  const n = slider(parts.sliders, own.key_position, [0, LAST_POSITION], slideTo("n"));
  const together = checkbox(parts.choices, own.together, set("together"));
  const base = choice(parts.choices, own.base, bases.map(String), (index) =>
    save(model, { base: bases[index] }),
  );
  const pair = choice(parts.choices, own.pair, range(width / 2).map(String), set("pair"));
  const mixed = checkbox(parts.breakers, own.mixed, set("mixed"));
  const values = checkbox(parts.breakers, own.rotate_values, set("rotate_values"));
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
  const { pair, speed, strings } = state;
  const { own } = strings;
  const head = (text) => element("th", { scope: "col" }, text);
  const name = (row) => {
    const distance = row.name === "distance";
    const style = distance ? null : `color:var(--labs-role-${row.name})`;
    return element("th", { scope: "row", style }, `${distance ? "n - m" : row.name}: ${row.angle}`);
  };
  const cells = (row) => [row.radians, row.degrees].map((text) => element("td", {}, text));
  const title = fill(own.pair_speed, { pair, speed: significant(speed) });
  return [
    element("thead", {}, element("tr", {}, head(title), head(own.radians), head(own.degrees))),
    element("tbody", {}, ...angleRows(state).map((row) => element("tr", {}, name(row), ...cells(row)))),
  ];
}

/** All numbers as text: the grid, then the curve. */
function asText(state, spec) {
  const { m, layouts, strings } = state;
  const curve = scoreCurve(state, m, 0, LAST_POSITION, layouts.k).map(
    ([distance, score]) => `${String(distance).padStart(5)}  ${format(score, 4).padStart(10)}`,
  );
  return [textTable(spec), [fill(strings.own.curve_as_text, { m }), ...curve].join("\n")].join("\n\n");
}

/** The sentences about the score.  Returns { update(state) }. */
function addVerdict(el) {
  let said = ""; // what is drawn
  return {
    update(state) {
      const verdict = verdictOf(state);
      if (JSON.stringify(verdict) === said) return; // a screen reader says only what is new
      said = JSON.stringify(verdict);
      const { score, findings } = verdict;
      const line = ({ text, wrong }) => part("p", wrong ? "labs-is-wrong" : null, text);
      el.replaceChildren(element("p", {}, element("strong", {}, score)), ...findings.map(line));
    },
  };
}

function build(view) {
  const { model, state, status, draw, addGrids } = view;
  const { own } = state.strings;
  const parts = frame(state, status);
  const controls = addControls(parts, state, model, draw);
  const verdict = addVerdict(parts.verdict);
  const text = fold(parts.root, own.as_text);
  const select = (id) => {
    if (id >= 0) save(model, { pair: pairOfCell(view.state, id) });
  };
  addGrids(parts.grid, (now) => [rotatedSpec(now)], { sentence: cellSentence, select });

  return {
    root: parts.root,
    update(now, [spec]) {
      const { pair, m, n, score } = now;
      controls.update(now);
      drawCircle(parts.circle, now);
      drawCurve(parts.curve, now);
      setAttribute(parts.circle, "aria-label", fill(own.circle_alt, { pair }));
      setAttribute(parts.curve, "aria-label", fill(own.curve_alt, { distance: n - m, score: format(score, 4) }));
      parts.angles.replaceChildren(...angleTable(now));
      verdict.update(now);
      text.update(asText(now, spec));
    },
  };
}

export default { render: (mount) => mountView(mount, { given, chosen, stateOf: ropeState, build }) };
