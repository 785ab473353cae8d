// Attention as arithmetic on flat, row-major arrays, and its matrices (T,T) as grids.  No document.
import { range, scaleFraction, strides } from "./numbers.js";
import { axisHeaders, numberText, placeWords } from "./tensor.js";
import { fill } from "./dom.js";

/** The name that a softmax axis has in the text, and its place in (B,H,T,T). */
export const SOFTMAX_AXES = { keys: 3, queries: 2, heads: 1 };

/** The dot product of `size` numbers of `a` from place `i` and of `b` from place `j`. */
export function dotAt(a, i, b, j, size) {
  let sum = 0;
  for (let e = 0; e < size; e++) sum += a[i + e] * b[j + e];
  return sum;
}

/** scores[b,h,i,j] = sum_e q[b,h,i,e] k[b,h,j,e] / sqrt(dh), for q and k (B,H,T,dh). */
export function attentionScores(q, k, [B, H, T, dh]) {
  const rows = range(B * H * T); // one a query: (b,h,i)
  return rows.flatMap((row) => {
    const first = (row - (row % T)) * dh; // where the keys of its batch and head begin
    return range(T).map((j) => dotAt(q, row * dh, k, first + j * dh, dh) / Math.sqrt(dh));
  });
}

/** The scores where the mask is true, else -Infinity; the mask (T,T) serves every batch and head. */
export function maskScores(scores, mask) {
  return scores.map((score, flat) => (mask[flat % mask.length] ? score : -Infinity));
}

/**
 * exp(x - m) / sum exp(x - m) along an axis, m the largest there, as `labs.llm.ops.softmax` computes it.
 * Where everything is -Infinity the result is NaN: a widget shows what the library refuses.
 */
export function softmaxAlong(values, shape, axis) {
  const result = values.slice();
  for (const places of slicesAlong(shape, axis)) {
    const largest = Math.max(...places.map((place) => values[place]));
    const powers = places.map((place) => Math.exp(values[place] - largest));
    const total = powers.reduce((sum, power) => sum + power, 0);
    places.forEach((place, n) => {
      result[place] = powers[n] / total;
    });
  }
  return result;
}

/** The places of each slice along an axis: for (2,3) and axis 0, [0,3], [1,4] and [2,5]. */
export function slicesAlong(shape, axis) {
  const step = strides(shape)[axis];
  const starts = range(strides(shape)[0] * shape[0]).filter((flat) => Math.floor(flat / step) % shape[axis] === 0);
  return starts.map((start) => range(shape[axis]).map((n) => start + n * step));
}

/**
 * A matrix (T,T) of queries i by keys j, as a `spec` of `tensorGrid`.
 *
 * `state` has shape [B,H,T,dh], labels, strings with "tensor" and "attention", mask, batch, head
 * and decimals.  `matrix` is { symbol, caption, values (flat, T*T), limit, hatched, sums }: with `hatched`
 * the entries that the mask forbids look so, with `sums` the sums of rows and columns stand at the edges.
 *
 * The ids are i*T + j; then come T sums of rows and T sums of columns.
 */
export function pairSpec(state, { symbol, caption, values, limit, hatched = false, sums = false }) {
  const { shape, batch, head, mask, decimals, strings } = state;
  const [B, H, T] = shape;
  const tensor = { ...state, axes: ["b", "h", "i", "j"], shape: [B, H, T, T] };
  const edge = sums ? [{ index: null, label: strings.attention.sum }] : [];
  const entry = (i, j) => {
    const id = i * T + j;
    const text = numberText(values[id], decimals, strings);
    if (hatched && !mask[id]) return { id, text, share: null, className: "labs-masked" };
    return { id, text, share: scaleFraction(values[id], limit) || 0 };
  };
  const cells = range(T).map((i) => range(T).map((j) => entry(i, j)));
  if (sums) addSums(cells, values, state);
  return {
    label: `${symbol}[${batch},${head}]`,
    caption,
    corner: ["i", "j"],
    rows: [...axisHeaders(tensor, 2, batch), ...edge],
    columns: [...axisHeaders(tensor, 3, batch), ...edge],
    groups: null,
    cells,
  };
}

/** Put the sums of a matrix at the ends of its rows and columns. */
function addSums(cells, values, { shape, decimals, strings }) {
  const T = shape[2];
  const { rows, columns } = edgeSums(values, T);
  const sum = (id, value, className) => {
    return { id, text: numberText(value, decimals, strings), share: null, className, disabled: true };
  };
  const rowClass = (value) => (isOne(value) ? "labs-sum" : "labs-sum labs-not-one");
  rows.forEach((value, i) => cells[i].push(sum(T * T + i, value, rowClass(value))));
  cells.push([...columns.map((value, j) => sum(T * T + T + j, value, "labs-sum")), null]);
}

/** The sums of the rows and of the columns of a matrix (T,T). */
export function edgeSums(values, T) {
  const add = (numbers) => numbers.reduce((sum, value) => sum + value, 0);
  return {
    rows: range(T).map((i) => add(range(T).map((j) => values[i * T + j]))),
    columns: range(T).map((j) => add(range(T).map((i) => values[i * T + j]))),
  };
}

/** The sum at the end of row n of the weights (T,T), or from n = T on of a column, in words. */
export function sumSentence(state, weights, n) {
  const { decimals, strings, shape } = state;
  const T = shape[2];
  const { rows, columns } = edgeSums(weights, T);
  const sum = numberText(n < T ? rows[n] : columns[n - T], decimals, strings);
  return n < T
    ? fill(strings.attention.row_sum, { query: pairPlace(state, "i", n), sum })
    : fill(strings.attention.column_sum, { key: pairPlace(state, "j", n - T), sum });
}

/** Whether weights add up to one, but for rounding; NaN does not. */
export function isOne(sum) {
  return Math.abs(sum - 1) < 1e-9;
}

/** A query or a key in words: `query 4 "n"`. */
export function pairPlace({ labels, strings, batch }, axis, index) {
  return placeWords({ labels, strings }, axis, index, batch);
}
