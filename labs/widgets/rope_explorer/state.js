// RoPE on one query, one key and one value: pairs of numbers rotated by position × θ.  No document.
import { fill } from "../shared/dom.js";
import { format, range, scaleFraction } from "../shared/numbers.js";
import { dotProduct, pairColumns, pairOf, pairSpeed, rotatePairs } from "../shared/rotation.js";

/** The last position that the reader can choose: `LAST_POSITION` of widget.py. */
export const LAST_POSITION = 63;

/** How far both vectors are moved to see whether only their distance counts. */
export const SHIFT = 7;

/** Decimals of scores, angles in radians and single numbers in sentences; cells show fewer. */
const DECIMALS = 4;
const CELL_DECIMALS = 2;

/** Two scores that differ by less than this part of |q| |k| differ by rounding only. */
const ROUNDING = 1e-9;

/** What the rows of the grid hold, in their order. */
const ROWS = ["q", "k", "product", "v"];

/** The score of a query at m and a key at n, where the key's pairs may be laid out in another way. */
export function ropeScore({ q, k, base }, m, n, layout) {
  return dotProduct(rotatePairs(q, m, base, "neighbours"), rotatePairs(k, n, base, layout));
}

/**
 * The scores of the query at m and a key at every position from `first` to `last`: [n - m, score] each.
 * @returns {[number, number][]}
 */
export function scoreCurve(state, m, first, last, layout) {
  return range(last - first + 1).map((step) => {
    const n = first + step;
    return [n - m, ropeScore(state, m, n, layout)];
  });
}

/** What changes when the reader slides `name`, "m" or "n", to a position; together, both stop at the ends. */
export function slide({ m, n, together }, name, position) {
  if (!together) return { [name]: position };
  const wanted = position - (name === "m" ? m : n);
  const by = Math.max(-Math.min(m, n), Math.min(LAST_POSITION - Math.max(m, n), wanted));
  return { m: m + by, n: n + by };
}

/**
 * What the widget shows, from what its model holds:
 *   q, k, v, m, n, base, pair, mixed, rotate_values, together   as in Python
 *   strings   "rope_explorer", which becomes "own"
 * To it are added the rotated vectors, the score, the score further on, and the score in one layout.
 */
export function ropeState(held) {
  const { q, k, v, m, n, base, pair, mixed, rotate_values, strings } = held;
  const width = q.length;
  const layouts = { q: "neighbours", k: mixed ? "halves" : "neighbours", v: "neighbours" };
  const positions = { q: m, k: n, v: rotate_values ? n : 0 };
  const state = { ...held, width, layouts, positions, strings: { own: strings.rope_explorer } };
  const rotated = (name, shift) => rotatePairs(held[name], positions[name] + shift, base, layouts[name]);
  return {
    ...state,
    speed: pairSpeed(pair, width, base),
    rotated: { q: rotated("q", 0), k: rotated("k", 0), v: rotated("v", 0) },
    valueFurtherOn: rotate_values ? rotated("v", SHIFT) : v,
    score: ropeScore(state, m, n, layouts.k),
    scoreFurtherOn: ropeScore(state, m + SHIFT, n + SHIFT, layouts.k),
    scoreInOneLayout: ropeScore(state, m, n, "neighbours"),
    bound: Math.sqrt(dotProduct(q, q) * dotProduct(k, k)), // no score is larger
  };
}

/** The chosen pair of a vector: its two numbers. */
export function chosenPair({ pair, width, layouts }, vector, name) {
  return pairColumns(pair, width, layouts[name]).map((column) => vector[column]);
}

/** A number with four significant digits and no needless zeros: 1, 0.01, 0.0003162. */
export function significant(value) {
  return String(Number(value.toPrecision(4)));
}

/** The rows of the table of angles: { name, angle, radians, degrees } for q, k, v and for k after q. */
export function angleRows({ m, n, positions, speed, rotate_values, strings }) {
  const row = (name, position) => ({
    name,
    angle: name === "v" && !rotate_values ? strings.own.not_rotated : fill(strings.own.angle, { position }),
    radians: format(position * speed, DECIMALS),
    degrees: format((position * speed * 180) / Math.PI, 1),
  });
  return [row("q", positions.q), row("k", positions.k), row("v", positions.v), row("distance", n - m)];
}

/** Whether two scores are equal but for rounding. */
export function sameScore({ bound }, one, other) {
  return Math.abs(one - other) <= ROUNDING * bound;
}

/** What the numbers say: { score, findings }, each finding as { text, wrong }. */
export function verdictOf(state) {
  const { m, n, mixed, rotate_values, score, scoreFurtherOn, scoreInOneLayout, strings } = state;
  const values = {
    distance: n - m,
    shift: SHIFT,
    score: format(score, DECIMALS),
    further: format(scoreFurtherOn, DECIMALS),
    right: format(scoreInOneLayout, DECIMALS),
    pair: state.pair,
    value: vectorText(chosenPair(state, state.rotated.v, "v")),
    value_further: vectorText(chosenPair(state, state.valueFurtherOn, "v")),
  };
  const finding = (right, ifRight, ifWrong) => ({
    text: fill(right ? ifRight : ifWrong, values),
    wrong: !right,
  });
  const distanceCounts = sameScore(state, score, scoreFurtherOn);
  const asInOneLayout = sameScore(state, score, scoreInOneLayout);
  return {
    score: fill(strings.own.score_now, values),
    findings: [
      finding(distanceCounts, strings.own.score_stays, strings.own.score_moves),
      ...(mixed ? [finding(asInOneLayout, strings.own.mixed_equal, strings.own.mixed_off)] : []),
      finding(!rotate_values, strings.own.value_stays, strings.own.value_rotated),
    ],
  };
}

function vectorText(numbers) {
  return `[${numbers.map((number) => format(number, CELL_DECIMALS)).join(", ")}]`;
}

/** The numbers of a row of the grid. */
function rowValues({ rotated }, row) {
  return row === "product" ? rotated.q.map((number, column) => number * rotated.k[column]) : rotated[row];
}

/** The layout of the pairs in a row; products stand in the query's columns. */
const layoutOf = ({ layouts }, row) => layouts[row] ?? layouts.q;

/** The row and the column of a cell of the grid. */
const placeOf = ({ width }, id) => ({ row: ROWS[Math.floor(id / width)], column: id % width });

/** The pair of a cell of the grid. */
export function pairOfCell(state, id) {
  const { row, column } = placeOf(state, id);
  return pairOf(column, state.width, layoutOf(state, row));
}

/** The grid of the rotated vectors and of the products that add up to the score: a part of its `spec`. */
export function rotatedSpec(state) {
  const { width, pair, limit, strings } = state;
  const label = { q: "q", k: "k", v: "v", product: "q × k" };
  const cell = (value, id) => ({
    id,
    text: format(value, CELL_DECIMALS),
    share: scaleFraction(value, limit),
  });
  const ids = range(ROWS.length * width);
  return {
    label: strings.own.grid,
    caption: strings.own.grid,
    corner: [null, "e"],
    rows: ROWS.map((row) => ({ index: null, label: label[row] })),
    columns: range(width).map((index) => ({ index, label: null })),
    groups: range(width / 2).map((index) => ({
      text: fill(strings.own.pair_number, { pair: index }),
      span: 2,
      className: "labs-pair",
    })),
    cells: ROWS.map((row, r) => rowValues(state, row).map((value, column) => cell(value, r * width + column))),
    selected: -1,
    marked: ids.filter((id) => pairOfCell(state, id) === pair),
  };
}

/** A cell of the grid in words. */
export function cellSentence(state, id) {
  const { strings } = state;
  const { row, column } = placeOf(state, id);
  const value = format(rowValues(state, row)[column], DECIMALS);
  const pair = pairOfCell(state, id);
  if (row === "product") return fill(strings.own.product_cell, { column, value });
  const before = format(state[row][column], DECIMALS);
  return fill(strings.own.vector_cell, { name: row, column, value, before, pair });
}

/** The largest of 1, 2, 5, 10, 20, ... and their decimal fractions that is at most `limit`: a round mark. */
export function roundMark(limit) {
  const power = 10 ** Math.floor(Math.log10(limit));
  const digit = [5, 2, 1].find((each) => each * power <= limit) ?? 1;
  return digit * power;
}
