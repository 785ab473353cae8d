// What the widget MaskExplorer shows, computed from what its model holds.  No document.
import { pairPlace, pairSpec, sumSentence } from "../shared/attention.js";
import { oneLayer } from "./one_layer.js";
import { range, scaleFraction } from "../shared/numbers.js";
import { axisHeaders, numberText, placeWords } from "../shared/tensor.js";
import { fill } from "../shared/dom.js";

/**
 * The state from what the model holds: params, settings, shape [B,H,T,dh], ids, last_targets, vocabulary,
 * decimals and what the reader chose as in Python, and strings.
 *
 * To it are added, for the chosen text: its tokens, the mask, `now` (the forward pass on the tokens), `moved`
 * (how far each position's logits are from those of the stored tokens), the targets, `leaks` (the pairs by
 * which a position that is no padding reads what it should say) and `empty` (the rows with nothing to read).
 */
export function maskState(held) {
  const { params, settings, shape, ids, tokens, batch, same_position, last_targets, vocabulary, strings } = held;
  const [B, H, T, dh] = shape;
  const part = (values) => values.slice(batch * T, (batch + 1) * T);
  const [text, stored] = [part(tokens), part(ids)];
  const padded = part(held.padding);
  const mask = allowedPairs({ ...held, padded, T });
  const now = oneLayer(params, settings, text, mask);
  const before = oneLayer(params, settings, stored, mask);
  const answers = range(T).map((i) => (same_position ? i : i + 1)); // where they stand; T is behind the text
  const leaks = range(T).filter((i) => answers[i] < T && !padded[i] && mask[i * T + answers[i]]);
  const letters = held.tokens.map((id) => vocabulary[id]);
  const lists = range(B).map((b) => letters.slice(b * T, (b + 1) * T));
  return {
    ...held,
    strings: { ...strings, own: strings.mask_explorer },
    ...{ B, H, T, dh, V: vocabulary.length, text, stored, padded, mask, now },
    labels: { i: lists, j: lists, t: lists, v: [vocabulary] },
    moved: range(T).map((i) => largestChange(now.logits, before.logits, i, vocabulary.length)),
    targets: same_position ? text : [...text.slice(1), last_targets[batch]],
    leaks: leaks.map((i) => i * T + answers[i]),
    empty: range(T).filter((i) => !mask.slice(i * T, (i + 1) * T).includes(true)),
  };
}

/** Which pairs (T,T) are allowed: causal and not padding, except for the entries that the reader has flipped. */
export function allowedPairs({ causal, padded, flipped, T }) {
  const rule = (i, j) => (!causal || j <= i) && !padded[j];
  return range(T * T).map((id) => rule(Math.floor(id / T), id % T) !== flipped.includes(id));
}

/** The entries flipped after the reader has chosen one, or has chosen none (-1). */
export function flip(flipped, id) {
  if (id < 0) return flipped;
  return flipped.includes(id) ? flipped.filter((each) => each !== id) : [...flipped, id];
}

/** How far row i of two matrices with rows of this width is apart at most; NaN where a number is none. */
function largestChange(now, before, i, width) {
  return Math.max(...range(width).map((n) => Math.abs(now[i * width + n] - before[i * width + n])));
}

/** The part of an array (H, ...) that belongs to the chosen head. */
function ofHead({ H, head }, values) {
  const size = values.length / H;
  return values.slice(head * size, (head + 1) * size);
}

/** The grids of pairs: scores, masked scores, weights; what leaks is outlined. */
export function maskSpecs(state) {
  const { now, leaks } = state;
  const { attention } = state.strings;
  const scores = ofHead(state, now.scores);
  const limit = Math.max(...scores.map(Math.abs)) || 1;
  const matrices = [
    { symbol: "S", caption: attention.scores, values: scores, limit },
    { symbol: "S + M", caption: attention.masked_scores, values: ofHead(state, now.masked), limit, hatched: true },
    { symbol: "P", caption: attention.weights, values: ofHead(state, now.weights), limit: 1, hatched: true },
  ];
  const outlined = (cell) => (leaks.includes(cell.id) ? { ...cell, className: "labs-leak" } : cell);
  return matrices.map((matrix) => {
    const spec = pairSpec(state, { ...matrix, sums: matrix.symbol === "P" });
    const cells = spec.cells.map((row) => row.map((cell) => (cell && matrix.hatched ? outlined(cell) : cell)));
    return { ...spec, cells };
  });
}

/** The grids of what comes of the weights: the output of the head, and the logits. */
export function resultSpecs(state) {
  const { now, batch, head, dh, V, strings, limit } = state;
  const output = { symbol: `O[${batch},${head}]`, caption: strings.own.output, values: ofHead(state, now.o) };
  const logits = { symbol: `logits[${batch}]`, caption: strings.own.logits, values: now.logits };
  return [
    rowsSpec(state, { ...output, limit: limit.output, axis: "e", width: dh }),
    rowsSpec(state, { ...logits, limit: limit.logits, axis: "v", width: V }),
  ];
}

/** A matrix with a row for each position, to read and not to select. */
function rowsSpec(state, { symbol, caption, values, limit, axis, width }) {
  const { batch, decimals, strings, T } = state;
  const tensor = { ...state, axes: ["t", axis], shape: [T, width] };
  const cell = (id) => {
    const none = Number.isNaN(values[id]);
    const share = none ? null : scaleFraction(values[id], limit);
    return { id, text: numberText(values[id], decimals, strings), share, disabled: true };
  };
  const columns = axisHeaders(tensor, 1, batch);
  return {
    label: symbol,
    caption,
    corner: ["t", axis],
    rows: axisHeaders(tensor, 0, batch),
    columns: axis === "v" ? columns.map(({ label }) => ({ index: null, label })) : columns,
    groups: null,
    cells: range(T).map((t) => range(width).map((n) => cell(t * width + n))),
  };
}

/** The position in words: `position 2 "t"`. */
export function positionWords({ labels, strings, batch }, t) {
  return placeWords({ labels, strings }, "t", t, batch);
}

/** How far the logits of a position have moved: "0" only where not a bit has changed. */
export function movedText({ moved, decimals, strings }, t) {
  if (moved[t] === 0) return strings.own.not_moved;
  const text = numberText(moved[t], decimals, strings);
  return Number(text) === 0 ? fill(strings.own.hardly_moved, { step: (10 ** -decimals).toFixed(decimals) }) : text;
}

/** The target of a position as the text table shows it; padding is asked nothing. */
export function targetText({ targets, padded, vocabulary, strings }, t) {
  return padded[t] ? strings.own.no_target : vocabulary[targets[t]];
}

/** Who can read an answer, in words. */
export function leakVerdict(state) {
  const { same_position, leaks, mask, T } = state;
  const { own } = state.strings;
  const positions = leaks.map((id) => Math.floor(id / T)).join(", ");
  if (same_position) return leaks.length > 0 ? fill(own.same_verdict, { positions }) : own.residual_verdict;
  if (leaks.length > 0) return fill(own.leak_verdict, { positions });
  const later = range(T * T).find((id) => mask[id] && id % T > Math.floor(id / T));
  if (later === undefined) return own.causal_verdict;
  const query = pairPlace(state, "i", Math.floor(later / T));
  return fill(own.later_verdict, { query, key: pairPlace(state, "j", later % T) });
}

/** Whether a position can see what it should say, or what comes after it. */
export function leaking({ same_position, mask, T }) {
  return same_position || mask.some((allowed, id) => allowed && id % T > Math.floor(id / T));
}

/** Which logits have moved since the tokens were changed, in words. */
export function movedVerdict({ text, stored, moved, T, strings: { own } }) {
  const changed = range(T).filter((t) => text[t] !== stored[t]);
  if (changed.length === 0) return own.unchanged;
  const moves = range(T).filter((t) => moved[t] > 0);
  const stays = range(T).filter((t) => moved[t] === 0);
  const early = moves.filter((t) => t < changed[0]);
  return [
    moves.length > 0 && fill(own.moved_at, { positions: moves.join(", ") }),
    stays.length > 0 && fill(own.stayed_at, { positions: stays.join(", ") }),
    early.length > 0 && fill(own.moved_early, { positions: early.join(", ") }),
  ]
    .filter(Boolean)
    .join(" ");
}

/** What happens in the first row with nothing to read: { title, steps }; without one, what to try. */
export function reportOf(state) {
  const { empty, now, T, strings } = state;
  const { own } = strings;
  if (empty.length === 0) {
    return { title: own.try_title, steps: [own.try_mask, own.try_token, own.try_same, own.try_padding] };
  }
  const row = ofHead(state, now.masked).slice(empty[0] * T, (empty[0] + 1) * T);
  const largest = Math.max(...row);
  const numbers = { largest, difference: row[0] - largest, power: Math.exp(row[0] - largest) };
  const unbroken = (value) => numberText(value, 2, strings).replace("-", "\u2011"); // a line may end at a hyphen
  const shown = Object.entries(numbers).map(([name, value]) => [name, unbroken(value)]);
  const places = Object.fromEntries(shown);
  return {
    title: fill(own.empty_title, { query: pairPlace(state, "i", empty[0]) }),
    steps: [own.empty_max, own.empty_difference, own.empty_spreads, own.empty_library].map((step) =>
      fill(step, places),
    ),
  };
}

/** A pair in words: what its entry in the mask is, and what choosing it does. */
export function pairSentence(state, id) {
  const { T, now, mask, decimals, strings } = state;
  if (id >= T * T) return sumSentence(state, ofHead(state, now.weights), id - T * T);
  const show = (values) => numberText(ofHead(state, values)[id], decimals, strings);
  return fill(mask[id] ? strings.own.allowed : strings.own.forbidden, {
    query: pairPlace(state, "i", Math.floor(id / T)),
    key: pairPlace(state, "j", id % T),
    score: show(now.scores),
    weight: show(now.weights),
  });
}

/** A number of the head's output in words. */
export function outputSentence(state, id) {
  const { dh, now, decimals, strings } = state;
  const value = numberText(ofHead(state, now.o)[id], decimals, strings);
  const position = positionWords(state, Math.floor(id / dh));
  return fill(strings.own.output_number, { position, column: id % dh, value });
}

/** A logit in words. */
export function logitSentence(state, id) {
  const { V, now, decimals, strings, vocabulary } = state;
  const value = numberText(now.logits[id], decimals, strings);
  const position = positionWords(state, Math.floor(id / V));
  return fill(strings.own.logit_number, { position, token: vocabulary[id % V], value });
}
