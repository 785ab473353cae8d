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
 * Python, and strings with the sections "tensor", "attention" and "attention_heatmap".  To it are added the scores, the
 * masked scores and the weights, each (B,H,T,T) and flat, and where the shown matrix begins in them.
 */
export function heatmapState(held) {
  const { q, k, shape, mask, axis, batch, head, strings } = held;
  const [B, H, T, dh] = shape;
  const scores = attentionScores(q, k, shape);
  const masked = maskScores(scores, mask);
  const weights = softmaxAlong(masked, [B, H, T, T], SOFTMAX_AXES[axis]);
  const texts = { words: strings.tensor, pairs: strings.attention, texts: strings.attention_heatmap };
  const limit = Math.max(...scores.map(Math.abs)) || 1;
  const first = (batch * H + head) * T * T;
  return { ...held, ...texts, B, H, T, dh, scores, masked, weights, limit, first };
}

/** The part of an array (B,H,T,T) that belongs to the chosen batch and head. */
function shownMatrix({ first, T }, values) {
  return values.slice(first, first + T * T);
}

/** The grids: scores, masked scores where the mask forbids something, weights with their sums. */
export function heatmapSpecs(state) {
  const { scores, masked, weights, limit, mask, pairs } = state;
  const all = [
    { symbol: "S", caption: pairs.scores, values: scores, limit },
    { symbol: "S + M", caption: pairs.masked_scores, values: masked, limit, hatched: true },
    { symbol: "P", caption: pairs.weights, values: weights, limit: 1, hatched: true, sums: true },
  ];
  const shown = mask.includes(false) ? all : [all[0], all[2]];
  return shown.map((matrix) => pairSpec(state, { ...matrix, values: shownMatrix(state, matrix.values) }));
}

/** What the axis of the softmax does to the sums, in words. */
export function axisVerdict(state) {
  const { axis, texts, H, T, pairs } = state;
  if (axis === "keys") return texts.keys_verdict;
  const { rows } = edgeSums(shownMatrix(state, state.weights), T);
  const verdict = axis === "queries" ? texts.queries_verdict : fill(texts.heads_verdict, { heads: H });
  if (rows.some(Number.isNaN)) return `${verdict} ${fill(texts.nan_sums, { nan: pairs.not_a_number })}`;
  if (rows.every(isOne)) return `${verdict} ${texts.by_luck}`;
  const [low, high] = [Math.min(...rows), Math.max(...rows)].map((sum) => numberText(sum, 2, pairs));
  return `${verdict} ${fill(texts.row_sums, { low, high })}`;
}

/** The cell `id` in words: a pair with its numbers, or the sum of a row or column. */
export function cellSentence(state, id) {
  const { T, first, mask, decimals, pairs, texts, scores, weights } = state;
  const show = (value) => numberText(value, decimals, pairs);
  if (id >= T * T) return sumSentence(state, shownMatrix(state, weights), id - T * T);
  return fill(mask[id] ? texts.pair : texts.masked_pair, {
    query: pairPlace(state, "i", Math.floor(id / T)),
    key: pairPlace(state, "j", id % T),
    score: show(scores[first + id]),
    weight: show(weights[first + id]),
    minus_infinity: pairs.minus_infinity,
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
  const { q, k, dh, T, first, selected, scores, mask, pairs, texts } = state;
  const [i, j] = [Math.floor(selected / T), selected % T];
  const start = (position) => (first / T + position) * dh; // first / T vectors come before this matrix
  const [query, key] = [start(i), start(j)];
  const numbers = range(dh).map((e) => [q[query + e], k[key + e], q[query + e] * k[key + e]]);
  const sum = dotAt(q, query, k, key, dh);
  const place = { query: pairPlace(state, "i", i), key: pairPlace(state, "j", j) };
  const result = fill(mask[selected] ? texts.score_result : texts.masked_result, {
    sum: numberText(sum, EXACT, pairs),
    width: dh,
    score: numberText(scores[first + selected], EXACT, pairs),
    minus_infinity: pairs.minus_infinity,
  });
  const columns = [
    { index: null, label: "q", role: "q" },
    { index: null, label: "k", role: "k" },
    { index: null, label: texts.product },
  ];
  const rows = range(dh).map((index) => ({ index, label: null }));
  const title = fill(texts.score_title, place);
  const sums = [null, null, sum];
  const table = sumTable(state, { title, corner: "e", rows, columns, numbers, sums, chosen: -1 });
  return { title, table, result };
}

/** The slice of the softmax that the entry belongs to: scores, exponentials, weights, and their sums. */
function weightDetails(state) {
  const { B, H, T, axis, first, selected, masked, weights, pairs, texts } = state;
  const entry = first + selected;
  const places = slicesAlong([B, H, T, T], SOFTMAX_AXES[axis]).find((slice) => slice.includes(entry));
  const chosen = places.indexOf(entry);
  const numbers = places.map((place) => [masked[place], Math.exp(masked[place]), weights[place]]);
  const total = (column) => numbers.reduce((sum, row) => sum + row[column], 0);
  const [name, template] = {
    keys: ["j", texts.keys_title],
    queries: ["i", texts.queries_title],
    heads: ["h", texts.heads_title],
  }[axis];
  const columns = [pairs.score, texts.power, pairs.weight].map((label) => ({ index: null, label }));
  const rows = places.map((_, index) => ({ index, label: labelOf(state.labels, name, index, state.batch) }));
  const sums = [null, total(1), total(2)];
  const title = fill(template, {
    query: pairPlace(state, "i", Math.floor(selected / T)),
    key: pairPlace(state, "j", selected % T),
  });
  return {
    title,
    table: sumTable(state, { title, corner: name, rows, columns, numbers, sums, chosen }),
    result: fill(texts.weight_result, {
      power: numberText(numbers[chosen][1], EXACT, pairs),
      total: numberText(total(1), EXACT, pairs),
      weight: numberText(weights[entry], EXACT, pairs),
    }),
  };
}

/** A `spec` of `numberTable`: rows of numbers, with their sums below. */
function sumTable({ pairs }, { title, corner, rows, columns, numbers, sums, chosen }) {
  const show = (className) => (value) =>
    value === null ? null : { text: numberText(value, EXACT, pairs), className };
  return {
    label: title,
    corner: [corner, null],
    rows: [...rows, { index: null, label: pairs.sum }],
    columns,
    cells: [
      ...numbers.map((line, row) => line.map(show(row === chosen ? "labs-chosen-number" : null))),
      sums.map(show("labs-total")),
    ],
  };
}
