// What the widget TraceExplorer shows, computed from what its model holds.  No document.
import { entryName, filledText, placedText, symbolText } from "./formula.js";
import { conditionsOf, formulaReads, formulaTerms, formulaValue, lookUps } from "./formula.js";
import { count, flatIndex, range, scaleFraction, unravel } from "../shared/numbers.js";
import { axisWord, labelOf, numberText, placeWords, sizeName } from "../shared/tensor.js";
import { fill } from "../shared/dom.js";

/** The axes that the reader picks an index on, by the name of the model's value. */
const PICKED = { b: "batch", h: "head" };

/** The numbers in a DataView: float64, little-endian. */
export function floatsOf(view) {
  return Float64Array.from({ length: view.byteLength / 8 }, (_, n) => view.getFloat64(8 * n, true));
}

/**
 * What never changes while a widget lives: the numbers of all tensors, the steps as in Python, their places by
 * key, the places of those that are computed, in order (`walk`), and the first computed step that reads a tensor.
 */
export function readTrace({ steps, numbers }) {
  const places = new Map(steps.map(({ key }, place) => [key, place]));
  const walk = range(steps.length).filter((place) => steps[place].phase !== "given");
  const reader = new Map();
  for (const place of walk) {
    for (const key of Object.values(steps[place].reads)) {
      if (!reader.has(places.get(key))) reader.set(places.get(key), place);
    }
  }
  return { steps, floats: floatsOf(numbers), places, walk, reader };
}

/**
 * The state from a `trace` and what the model holds: sizes, labels, step, layer, batch, head, selected and
 * trail as in Python, and strings.  To it are added the current step and the index of the selected entry in its tensor.
 */
export function traceState(trace, held) {
  const { strings, step } = held;
  const texts = { ...strings, own: strings.trace_explorer };
  const state = { ...trace, ...held, strings: texts, current: trace.steps[step] };
  const matrix = matrixShape(state.current);
  const isThere = held.selected >= 0 && held.selected < count(matrix);
  const selected = isThere ? held.selected : flatIndex(usualEntry(state.current), matrix);
  return { ...state, selected, entry: [...pickedIndex(state, state.current), ...unravel(selected, matrix)] };
}

/** How many leading axes of a tensor are picked: batch and head. */
function pickedCount({ axes }) {
  const first = axes.findIndex((axis) => !(axis in PICKED));
  return first < 0 ? axes.length : first;
}

function matrixShape(step) {
  return step.shape.slice(pickedCount(step));
}

function pickedIndex(state, step) {
  return step.axes.slice(0, pickedCount(step)).map((axis) => state[PICKED[axis]]);
}

/** The entry that is selected where the reader has not chosen one: a late position, which has read others. */
function usualEntry(step) {
  const first = pickedCount(step);
  const usual = (axis, size) => (axis === "t" || axis === "i" ? size - 1 : Math.min(1, size - 1));
  return step.axes.slice(first).map((axis, a) => usual(axis, step.shape[first + a]));
}

// ---- moving ---------------------------------------------------------------------------------------------------

/** The model's values that show a step: the entry keeps its place on every axis that both tensors have. */
export function valuesAt(state, place) {
  const next = state.steps[place];
  const { current, entry } = state;
  const alike = { t: "i", i: "t" };
  const kept = (axis, otherwise) => {
    const a = current.axes.indexOf(axis);
    const found = a >= 0 ? a : current.axes.indexOf(alike[axis]);
    return found >= 0 ? entry[found] : otherwise; // axes of one letter have one size
  };
  const first = pickedCount(next);
  const index = usualEntry(next).map((otherwise, a) => kept(next.axes[first + a], otherwise));
  return { ...stepValues(state, place), selected: flatIndex(index, matrixShape(next)) };
}

function stepValues(state, place) {
  return { step: place, layer: state.steps[place].layer ?? state.layer };
}

/** The model's values that show an entry of a step. */
export function valuesAtEntry(state, place, index) {
  const step = state.steps[place];
  const first = pickedCount(step);
  const picked = Object.fromEntries(step.axes.slice(0, first).map((axis, a) => [PICKED[axis], index[a]]));
  return { ...stepValues(state, place), ...picked, selected: flatIndex(index.slice(first), matrixShape(step)) };
}

/** Where the current step stands in the walk; what is given stands where it is read first. */
export function walkPosition({ walk, reader, step }) {
  return walk.indexOf(walk.includes(step) ? step : (reader.get(step) ?? walk[0]));
}

/** The place of the step that is `by` steps on, or null; from what is given one step on leads to its reader. */
export function neighbour(state, by) {
  const isGiven = state.current.phase === "given";
  return state.walk[walkPosition(state) + (isGiven && by > 0 ? by - 1 : by)] ?? null;
}

/** The place of the first computed step of a phase, or null. */
export function firstOf({ steps, walk }, phase) {
  return walk.find((place) => steps[place].phase === phase) ?? null;
}

/** The place of the step of the same name in another layer, or null. */
export function sameInLayer({ steps, current }, layer) {
  const place = steps.findIndex((step) => step.name === current.name && step.layer === layer);
  return place < 0 ? null : place;
}

// ---- numbers --------------------------------------------------------------------------------------------------

/** What the names in a step's formula are, for the functions of formula.js. */
export function scopeOf(state, step) {
  return {
    sizes: state.sizes,
    at: (name, index) => numberAt(state, state.steps[state.places.get(step.reads[name])], index),
  };
}

function numberAt({ floats }, step, index) {
  return floats[step.start + flatIndex(index, step.shape)];
}

/** The letters of a step's index: { b: 0, h: 1, i: 3, j: 2 }. */
function lettersOf({ axes }, index) {
  return Object.fromEntries(axes.map((axis, a) => [axis, index[a]]));
}

/** A number to calculate with: whole ones as they are, else four decimals, or four digits if it is small. */
export function shortNumber(value) {
  return shortest(value, Math.abs(value) < 0.1 ? withDigits(value, 4) : value.toFixed(4));
}

/** A number with ten digits. */
export function longNumber(value) {
  return shortest(value, withDigits(value, 10));
}

function withDigits(value, digits) {
  return Math.abs(value) < 1e-4 ? value.toExponential(digits - 1) : value.toPrecision(digits);
}

/** The `rounded` text of a number, or the number itself where that is shorter. */
function shortest(value, rounded) {
  if (!Number.isFinite(value) || Number.isInteger(value)) return String(value).replace("Infinity", "inf");
  const exact = String(value);
  return exact.length < rounded.length ? exact : rounded;
}

// ---- grids ----------------------------------------------------------------------------------------------------

/** The headers of an axis; letters depend on the batch. */
function headers(state, step, axis, size, index) {
  const letters = step.axes.includes("b") || axis === "v" ? state.labels : {};
  const batch = step.axes[0] === "b" ? index[0] : 0;
  return range(size).map((n) => ({ index: n, label: labelOf(letters, axis, n, batch) }));
}

/**
 * The matrix of a step at the leading indices, as a `spec` of `tensorGrid`; `look(cell)` finishes a cell.  With
 * `ids` there are only these cells.
 * @param {Set<number> | null} ids
 */
function gridSpec(state, step, leading, look, ids = null) {
  const first = leading.length;
  const [rowAxis, columnAxis] = [null, null, ...step.axes.slice(first)].slice(-2);
  const [rows, columns] = [1, 1, ...step.shape.slice(first)].slice(-2);
  const start = step.start + leading.reduce((sum, n, a) => sum * step.shape[a] + n, 0) * rows * columns;
  const cell = (row, column) => {
    const id = row * columns + column;
    if (ids !== null && !ids.has(id)) return null;
    const value = state.floats[start + id];
    const masked = value === -Infinity;
    return look({
      id,
      text: numberText(value, step.decimals, state.strings),
      share: masked ? null : scaleFraction(value, step.limit) || 0,
      className: masked ? "labs-masked" : null,
    });
  };
  const nothing = [{ index: null, label: null }];
  return {
    label: entryName(step.name, leading),
    caption: null,
    corner: [rowAxis, columnAxis],
    rows: rowAxis === null ? nothing : headers(state, step, rowAxis, rows, leading),
    columns: columnAxis === null ? nothing : headers(state, step, columnAxis, columns, leading),
    groups: null,
    cells: range(rows).map((row) => range(columns).map((column) => cell(row, column))),
    selected: -1,
    marked: [],
    digits: step.digits,
  };
}

/** The grid of the current step, complete for `tensorGrid`. */
export function currentSpec(state) {
  const { current, selected } = state;
  const spec = gridSpec(state, current, pickedIndex(state, current), (cell) => cell);
  return { ...spec, selected };
}

/**
 * The tensors that the selected entry was computed from, one record a matrix in which something was read:
 *   place    of the step
 *   leading  the indices of the matrix
 *   first    the id of the first cell that was read
 *   spec     of `tensorGrid`; the cells are those that were read, and each says that it leads to its entry
 */
export function sourcesOf(state) {
  const { current, steps, places, entry } = state;
  if (current.formula === null) return [];
  const reads = formulaReads(current.formula, scopeOf(state, current), lettersOf(current, entry));
  const matrices = new Map();
  for (const { name, index } of reads) {
    const place = places.get(current.reads[name]);
    const leading = index.slice(0, pickedCount(steps[place]));
    const at = `${place}:${leading}`;
    if (!matrices.has(at)) matrices.set(at, { place, leading, ids: new Set() });
    matrices.get(at).ids.add(flatIndex(index.slice(leading.length), matrixShape(steps[place])));
  }
  const order = [...new Set([...matrices.values()].map(({ place }) => place))]; // as the formula names them
  return [...matrices.values()]
    .toSorted((a, b) => order.indexOf(a.place) - order.indexOf(b.place) || byIndex(a.leading, b.leading))
    .map(({ place, leading, ids }) => {
      return { place, leading, first: Math.min(...ids), spec: sourceSpec(state, steps[place], leading, ids) };
    });
}

function byIndex(a, b) {
  const n = a.findIndex((index, axis) => index !== b[axis]);
  return n < 0 ? 0 : a[n] - b[n];
}

function sourceSpec(state, step, leading, ids) {
  const look = (cell) => {
    const entry = entryName(step.name, cellIndex(state, { place: state.places.get(step.key), leading }, cell.id));
    const name = fill(state.strings.own.go_there, { entry, number: cell.text });
    return { ...cell, name, className: [cell.className, "labs-read"].filter(Boolean).join(" ") };
  };
  return gridSpec(state, step, leading, look, ids);
}

/** The shown matrix of the current step, in the form of a source. */
export function currentMatrix(state) {
  return { place: state.step, leading: pickedIndex(state, state.current) };
}

/** The index in its tensor of a cell of a matrix, { place, leading }. */
export function cellIndex({ steps }, { place, leading }, id) {
  return [...leading, ...unravel(id, matrixShape(steps[place]))];
}

// ---- words ----------------------------------------------------------------------------------------------------

/** `scores[0,1,3,2] = -0.0312: query 3 “e”, key 2 “t”`. */
export function entrySentence(state, step, index) {
  const { strings, labels } = state;
  const number = fill(strings.tensor.number, {
    name: step.name,
    index: index.join(","),
    value: longNumber(numberAt(state, step, index)),
  });
  const named = index.length === 0 ? number.replace("[]", "") : number;
  const letters = step.axes.includes("b") ? labels : { v: labels.v };
  const batch = step.axes[0] === "b" ? index[0] : 0;
  const places = step.axes.map((axis, a) => placeWords({ labels: letters, strings }, axis, index[a], batch));
  return places.length === 0 ? named : fill(strings.tensor.number_at, { number: named, places: places.join(", ") });
}

const SIZE_LETTERS = { i: "T", j: "T", m: "D", e: "dh", r: "dh/2" };

/** The sizes of a step's axes, in letters: ["B", "H", "T", "dh"]. */
export function sizeLetters({ axes }) {
  return axes.map((axis) => SIZE_LETTERS[axis] ?? sizeName(axis));
}

/** Where the current step stands, in words. */
export function stepSentence(state) {
  const { current, strings, walk } = state;
  if (current.phase === "given") return strings.own.given;
  const sources = Object.entries(current.reads).map(([name, key]) => {
    return state.steps[state.places.get(key)].layer === current.layer ? name : shortKey(state, key);
  });
  const pass = current.phase === "forward" ? strings.own.forward : strings.own.backward;
  const number = walkPosition(state) + 1;
  const template = sources.length > 0 ? strings.own.step_from : strings.own.step_alone;
  return fill(template, { number, all: walk.length, pass, by: current.by, sources: sources.join(", ") });
}

/** The entry that "return" leads to, by name, or null. */
export function entryBefore(state) {
  if (state.trail.length === 0) return null;
  const [place, batch, head, selected] = state.trail.at(-1);
  const leading = pickedIndex({ batch, head }, state.steps[place]);
  return entryName(state.steps[place].name, cellIndex(state, { place, leading }, selected));
}

/**
 * Which steps of the forward pass read the current tensor, or, of a gradient, the tensor whose gradient it is: what
 * comes back from each of them adds up in the gradient.  { name, places }: the tensor, and where those steps are.
 */
export function readersOf(state) {
  const { current, steps, places, walk } = state;
  const tensor = current.of === null ? current : steps[places.get(current.of)];
  const found = walk.filter((place) => Object.values(steps[place].reads).includes(tensor.key));
  const isForward = (place) => steps[place].phase === "forward";
  return { name: tensor.name, places: tensor.phase === "backward" ? found : found.filter(isForward) };
}

/** What the reader picks an index of in vain, by the name of the model's value: why, or null where it matters. */
export function idleChoices({ current, strings }) {
  const why = (axis) => {
    const known = current.axes.includes(axis);
    return known ? null : fill(strings.own.no_axis, { name: current.name, axis: axisWord({ strings }, axis) });
  };
  return Object.fromEntries(Object.entries(PICKED).map(([axis, name]) => [name, why(axis)]));
}

/** A key without its layer, where there is only one. */
export function shortKey({ layers }, key) {
  return layers === 1 ? key.replace("blocks.0.", "") : key;
}

// ---- how an entry comes about ---------------------------------------------------------------------------------

/**
 * How the selected entry comes about: { symbols, placed, filled, result, exact, remarks }, all texts but `remarks`,
 * a list of sentences.  Nothing is said twice: `filled` and `exact` are empty where they would only repeat what
 * stands before or after them, and where the indices in their places are the result, `placed` is the name alone.
 * What is given is just named, with its number.
 */
export function entryFormula(state) {
  const { current, entry, strings } = state;
  const name = entryName(current.name, entry);
  const value = numberAt(state, current, entry);
  const number = shortNumber(value);
  const exact = number === longNumber(value) ? "" : fill(strings.own.exactly, { value: longNumber(value) });
  const result = `= ${number}`;
  if (current.formula === null) return { symbols: "", placed: name, filled: "", result, exact, remarks: [] };
  const scope = scopeOf(state, current);
  const index = lettersOf(current, entry);
  const placed = placedText(current.formula, scope, index);
  const filled = filledText(current.formula, scope, index, shortNumber);
  return {
    symbols: `${entryName(current.name, current.axes)} = ${symbolText(current.formula, strings.own)}`,
    placed: placed === number ? name : `${name} = ${placed}`,
    filled: filled === number || filled === placed ? "" : `= ${filled}`,
    result,
    exact,
    remarks: [
      ...lookUpRemarks(state, scope, index),
      ...conditionRemarks(state, scope, index),
      ...roundingRemarks(state, scope, index, value),
    ],
  };
}

/** The entries that served as an index: which row of the embedding it is. */
function lookUpRemarks({ current, strings }, scope, index) {
  return lookUps(current.formula, index).map(([, name, places]) => {
    const place = places.map((part) => formulaValue(part, scope, index));
    return fill(strings.own.looked_up, { entry: entryName(name, place), value: scope.at(name, place) });
  });
}

/** Which branches a formula takes, and the entries that decide it. */
function conditionRemarks({ current, strings }, scope, index) {
  return conditionsOf(current.formula, scope, index).flatMap((tree) => {
    const reads = formulaReads(tree, scope, index).map(({ name, index: place }) => {
      return fill(strings.own.looked_up, { entry: entryName(name, place), value: scope.at(name, place) });
    });
    return [...reads, fill(strings.own.condition, { condition: placedText(truth(tree, scope, index), scope, index) })];
  });
}

/** The condition as it is true for the entry: one that does not hold, turned round. */
function truth(tree, scope, index) {
  const [sign, ...sides] = tree;
  return formulaValue(tree, scope, index) ? tree : [{ "==": "!=", "<=": ">" }[sign], ...sides];
}

/** What the printed numbers give, if that is not quite the number. */
function roundingRemarks({ current, strings }, scope, index, value) {
  const printed = (text) => Number(text.replace("inf", "Infinity"));
  const at = (name, place) => printed(shortNumber(scope.at(name, place)));
  const rounded = formulaValue(current.formula, { ...scope, at }, index);
  const [short, wanted] = [shortNumber(rounded), shortNumber(value)];
  return short === wanted ? [] : [fill(strings.own.rounded, { rounded: short, value: wanted })];
}

/**
 * The terms that add up, for `numberTable`, with the sentence below them: { title, table, result }; null where
 * there are none.
 */
export function termsOfEntry(state) {
  const { current, entry, strings } = state;
  if (current.formula === null) return null;
  const found = formulaTerms(current.formula, scopeOf(state, current), lettersOf(current, entry));
  if (found === null) return null;
  const { kind, whole, names, terms, total } = found;
  const variables = terms.length > 0 ? terms[0].index.map(([variable]) => variable) : [];
  const roles = names.map((name) => state.steps[state.places.get(current.reads[name])].role);
  const running = kind === "sum" ? runningTotals(terms) : null;
  const title = fill(kind === "sum" ? strings.own.terms : strings.own.largest_of, { count: terms.length });
  const cell = (value, className) => ({ text: shortNumber(value), className });
  const chosen = terms.findIndex(({ value }) => kind === "max" && value === total);
  const rows = terms.map(({ index, text }) => ({
    index: text === null ? index.map(([, value]) => value).join(",") : null,
    label: text,
  }));
  const table = {
    label: title,
    corner: [variables.length > 0 ? variables.join(",") : null, null],
    rows,
    columns: [
      ...names.map((label, n) => ({ index: null, label, role: roles[n] })),
      { index: null, label: strings.own.term },
      ...(running ? [{ index: null, label: strings.own.total }] : []),
    ],
    cells: terms.map(({ factors, value }, n) => [
      ...factors.map((factor) => cell(factor, null)),
      cell(value, n === chosen ? "labs-chosen-number" : null),
      ...(running ? [cell(running[n], n === terms.length - 1 ? "labs-chosen-number" : null)] : []),
    ]),
  };
  return { title, table, result: termsSentence(state, found, whole, total) };
}

function runningTotals(terms) {
  let total = 0;
  return terms.map(({ value }) => (total += value));
}

function termsSentence({ strings }, { kind, terms }, whole, total) {
  if (terms.length === 0) return strings.own.no_terms;
  if (kind === "max") return fill(strings.own.largest, { total: shortNumber(total) });
  const printed = terms.reduce((sum, { value }) => sum + Number(shortNumber(value)), 0);
  const sentence = fill(whole ? strings.own.adds_up : strings.own.adds_up_within, { total: shortNumber(total) });
  if (shortNumber(printed) === shortNumber(total)) return sentence;
  return `${sentence} ${fill(strings.own.printed_terms, { printed: shortNumber(Number(printed.toPrecision(12))) })}`;
}

/** All that is shown of the entry, as text to copy. */
export function entryText(state) {
  const { current, entry, strings } = state;
  const lines = [entrySentence(state, current, entry)];
  if (current.formula === null) return [...lines, strings.own.given].join("\n");
  const { symbols, placed, filled, result, exact, remarks } = entryFormula(state);
  const formulas = [symbols, placed].map((text) => inLine(text, strings));
  lines.push("", ...formulas, ...[filled, [result, exact].filter(Boolean).join(" ")].filter(Boolean), ...remarks);
  const terms = termsOfEntry(state);
  return (terms === null ? lines : [...lines, "", tableText(terms), terms.result]).join("\n");
}

/** A formula where nothing can be set low: `Σ over b,t where ids[b,t] = v: dx[b,t,2]`. */
function inLine(formula, { own }) {
  return formula.replace(/_\(([^():]*)(?:: ([^()]*))?\)/g, (_, variables, condition) =>
    condition === undefined ? fill(own.over, { variables }) : fill(own.over_where, { variables, condition }),
  );
}

function tableText({ title, table }) {
  const head = [table.corner[0] ?? "", ...table.columns.map(({ label }) => label)];
  const body = table.rows.map(({ index, label }, r) => [label ?? index, ...table.cells[r].map(({ text }) => text)]);
  return [title, ...[head, ...body].map((line) => line.join("\t"))].join("\n");
}
