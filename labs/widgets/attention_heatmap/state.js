// What the widget AttentionHeatmap shows, computed from what its model holds.  No document.
import { attentionScores, dotAt, edgeSums, isOne, maskScores, slicesAlong } from "../shared/attention.js";
import { pairPlace, pairSpec, softmaxAlong, sumSentence, SOFTMAX_AXES } from "../shared/attention.js";
import { range } from "../shared/numbers.js";
import { labelOf, numberText } from "../shared/tensor.js";
import { fill } from "../shared/dom.js";

/** Decimals of the arithmetic behind one entry. */
const EXACT = 4;

/**
 * The state from what the model holds: q, k, shape, mask, labels, decimals, batch, head, axis, selected as in
 * Python, and strings.  To it are added the scores, the masked scores and the weights, each (B,H,T,T) and flat, and
 * where the shown matrix begins in them.
 */
export function heatmapState(held) {
  const { q, k, shape, mask, axis, batch, head, strings } = held;
  const [B, H, T, dh] = shape;
  const scores = attentionScores(q, k, shape);
  const masked = maskScores(scores, mask);
  const weights = softmaxAlong(masked, [B, H, T, T], SOFTMAX_AXES[axis]);
  const limit = Math.max(...scores.map(Math.abs)) || 1;
  const first = (batch * H + head) * T * T;
  const texts = { ...strings, own: strings.attention_heatmap };
  return { ...held, strings: texts, B, H, T, dh, scores, masked, weights, limit, first };
}

/** The part of an array (B,H,T,T) that belongs to the chosen batch and head. */
function shownMatrix({ first, T }, values) {
  return values.slice(first, first + T * T);
}

/** The grids: scores, masked scores where the mask forbids something, weights with their sums. */
export function heatmapSpecs(state) {
  const { scores, masked, weights, limit, mask, strings } = state;
  const all = [
    { symbol: "S", caption: strings.attention.scores, values: scores, limit },
    { symbol: "S + M", caption: strings.attention.masked_scores, values: masked, limit, hatched: true },
    { symbol: "P", caption: strings.attention.weights, values: weights, limit: 1, hatched: true, sums: true },
  ];
  const shown = mask.includes(false) ? all : [all[0], all[2]];
  return shown.map((matrix) => pairSpec(state, { ...matrix, values: shownMatrix(state, matrix.values) }));
}

/** What the axis of the softmax does to the sums, in words. */
export function axisVerdict(state) {
  const { axis, H, T, strings } = state;
  const { own, attention } = strings;
  if (axis === "keys") return own.keys_verdict;
  const { rows } = edgeSums(shownMatrix(state, state.weights), T);
  const verdict = axis === "queries" ? own.queries_verdict : fill(own.heads_verdict, { heads: H });
  if (rows.some(Number.isNaN)) return `${verdict} ${fill(own.nan_sums, { nan: attention.not_a_number })}`;
  if (rows.every(isOne)) return `${verdict} ${own.by_luck}`;
  const [low, high] = [Math.min(...rows), Math.max(...rows)].map((sum) => numberText(sum, 2, strings));
  return `${verdict} ${fill(own.row_sums, { low, high })}`;
}

/** The cell `id` in words: a pair with its numbers, or the sum of a row or column. */
export function cellSentence(state, id) {
  const { T, first, mask, decimals, strings, scores, weights } = state;
  const show = (value) => numberText(value, decimals, strings);
  if (id >= T * T) return sumSentence(state, shownMatrix(state, weights), id - T * T);
  return fill(mask[id] ? strings.own.pair : strings.own.masked_pair, {
    query: pairPlace(state, "i", Math.floor(id / T)),
    key: pairPlace(state, "j", id % T),
    score: show(scores[first + id]),
    weight: show(weights[first + id]),
    minus_infinity: strings.attention.minus_infinity,
  });
}

/**
 * How the selected entry comes about: { score, weight }, each { title, table, result }, where `table` is a
 * `spec` of `numberTable`.
 */
export function entryDetails(state) {
  return { score: scoreDetails(state), weight: weightDetails(state) };
}

/** The two vectors, their products, the sum and the scale. */
function scoreDetails(state) {
  const { q, k, dh, T, first, selected, scores, mask, strings } = state;
  const [i, j] = [Math.floor(selected / T), selected % T];
  const start = (position) => (first / T + position) * dh; // first / T vectors come before this matrix
  const [query, key] = [start(i), start(j)];
  const numbers = range(dh).map((e) => [q[query + e], k[key + e], q[query + e] * k[key + e]]);
  const sum = dotAt(q, query, k, key, dh);
  const place = { query: pairPlace(state, "i", i), key: pairPlace(state, "j", j) };
  const result = fill(mask[selected] ? strings.own.score_result : strings.own.masked_result, {
    sum: numberText(sum, EXACT, strings),
    width: dh,
    score: numberText(scores[first + selected], EXACT, strings),
    minus_infinity: strings.attention.minus_infinity,
  });
  const columns = [
    { index: null, label: "q", role: "q" },
    { index: null, label: "k", role: "k" },
    { index: null, label: strings.own.product },
  ];
  const rows = range(dh).map((index) => ({ index, label: null }));
  const title = fill(strings.own.score_title, place);
  const sums = [null, null, sum];
  const table = sumTable(state, { title, corner: "e", rows, columns, numbers, sums, chosen: -1 });
  return { title, table, result };
}

/** The slice of the softmax that the entry belongs to: scores, exponentials, weights, and their sums. */
function weightDetails(state) {
  const { B, H, T, axis, first, selected, masked, weights, strings } = state;
  const { own, attention } = strings;
  const entry = first + selected;
  const [places] = slicesAlong([B, H, T, T], SOFTMAX_AXES[axis]).filter((slice) => slice.includes(entry));
  const chosen = places.indexOf(entry);
  const numbers = places.map((place) => [masked[place], Math.exp(masked[place]), weights[place]]);
  const total = (column) => numbers.reduce((sum, row) => sum + row[column], 0);
  const [name, template] = {
    keys: ["j", own.keys_title],
    queries: ["i", own.queries_title],
    heads: ["h", own.heads_title],
  }[axis];
  const columns = [attention.score, own.power, attention.weight].map((label) => ({ index: null, label }));
  const rows = places.map((_, index) => ({ index, label: labelOf(state.labels, name, index, state.batch) }));
  const sums = [null, total(1), total(2)];
  const title = fill(template, {
    query: pairPlace(state, "i", Math.floor(selected / T)),
    key: pairPlace(state, "j", selected % T),
  });
  return {
    title,
    table: sumTable(state, { title, corner: name, rows, columns, numbers, sums, chosen }),
    result: fill(own.weight_result, {
      power: numberText(numbers[chosen][1], EXACT, strings),
      total: numberText(total(1), EXACT, strings),
      weight: numberText(weights[entry], EXACT, strings),
    }),
  };
}

/** A `spec` of `numberTable`: rows of numbers, with their sums below. */
function sumTable({ strings }, { title, corner, rows, columns, numbers, sums, chosen }) {
  const show = (className) => (value) =>
    value === null ? null : { text: numberText(value, EXACT, strings), className };
  return {
    label: title,
    corner: [corner, null],
    rows: [...rows, { index: null, label: strings.attention.sum }],
    columns,
    cells: [
      ...numbers.map((line, row) => line.map(show(row === chosen ? "labs-chosen-number" : null))),
      sums.map(show("labs-total")),
    ],
  };
}
