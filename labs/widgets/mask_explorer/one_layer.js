// The model with one layer, forward, on one text: what `labs.llm.model.forward` computes.  No document.
//
// Matrices are flat and row-major.  `params` has the keys of `labs.llm.parameters.param_shapes`, `settings`
// holds D, H, base and eps.
import { attentionScores, maskScores, softmaxAlong } from "../shared/attention.js";
import { range } from "../shared/numbers.js";
import { rotatePairs } from "../shared/rotation.js";

/** The rows of a matrix whose rows have this width. */
export function rowsOf(x, width) {
  return range(x.length / width).map((row) => x.slice(row * width, (row + 1) * width));
}

/** x (n,width) @ w (width,m) -> (n,m). */
export function matmul(x, w, width) {
  const columns = w.length / width;
  const product = (row, column) => row.reduce((sum, value, e) => sum + value * w[e * columns + column], 0);
  return rowsOf(x, width).flatMap((row) => range(columns).map((column) => product(row, column)));
}

/** Each row of x scaled to unit root mean square, then by the gain. */
export function rmsNorm(x, gain, eps) {
  const scaled = (row) => {
    const meanSquare = row.reduce((sum, value) => sum + value * value, 0) / row.length;
    const inverse = 1 / Math.sqrt(meanSquare + eps);
    return row.map((value, d) => gain[d] * (value * inverse));
  };
  return rowsOf(x, gain.length).flatMap(scaled);
}

/** (T,D) -> (H,T,dh): the columns of each head together. */
export function splitHeads(x, D, H) {
  const dh = D / H;
  return range(H).flatMap((h) => rowsOf(x, D).flatMap((row) => row.slice(h * dh, (h + 1) * dh)));
}

/** (H,T,dh) -> (T,D): the heads of each position side by side, the inverse of splitHeads. */
export function mergeHeads(x, D, H) {
  const vectors = rowsOf(x, D / H);
  const T = vectors.length / H;
  return range(T).flatMap((t) => range(H).flatMap((h) => vectors[h * T + t]));
}

/** (H,T,dh) with the vector at position t rotated by t, as `labs.llm.model.rope` does. */
export function rotatePositions(x, T, dh, base) {
  return rowsOf(x, dh).flatMap((vector, row) => rotatePairs(vector, row % T, base, "neighbours"));
}

/** P (H,T,T) times v (H,T,dh): what each query has read. */
export function readValues(weights, v, T, dh) {
  const heads = rowsOf(v, T * dh);
  return rowsOf(weights, T * T).flatMap((matrix, h) => matmul(matrix, heads[h], T));
}

/** The gated feed-forward on each row: (silu(x @ w1) * (x @ w3)) @ w2. */
export function swiglu(x, w1, w3, w2, D) {
  const u = matmul(x, w1, D);
  const up = matmul(x, w3, D);
  const hidden = u.map((value, n) => (value / (1 + Math.exp(-value))) * up[n]);
  return matmul(hidden, w2, w1.length / D);
}

const addTo = (x, y) => x.map((value, n) => value + y[n]);

/**
 * From the ids of one text (T,) to its logits (T,V), with everything on the way that a widget shows.
 *
 * `mask` is (T,T), true = may read.  A row with nothing to read, which the library refuses, becomes NaN.
 * Returns { scores, masked, weights (H,T,T), o (H,T,dh), logits (T,V) }.
 */
export function oneLayer(params, { D, H, base, eps }, ids, mask) {
  const weight = (name) => params[`blocks.0.${name}`];
  const T = ids.length;
  const dh = D / H;
  const x = ids.flatMap((id) => params.embedding.slice(id * D, (id + 1) * D));
  const z = rmsNorm(x, weight("attn_norm"), eps);
  const [q, k, v] = ["wq", "wk", "wv"].map((name) => splitHeads(matmul(z, weight(name), D), D, H));
  const rotated = [q, k].map((each) => rotatePositions(each, T, dh, base));
  const scores = attentionScores(...rotated, [1, H, T, dh]);
  const masked = maskScores(scores, mask);
  const weights = softmaxAlong(masked, [H, T, T], 2);
  const o = readValues(weights, v, T, dh);
  const r = addTo(x, matmul(mergeHeads(o, D, H), weight("wo"), D));
  const n = rmsNorm(r, weight("ffn_norm"), eps);
  const y = addTo(r, swiglu(n, weight("w1"), weight("w3"), weight("w2"), D));
  const logits = matmul(rmsNorm(y, params.final_norm, eps), params.unembedding, D);
  return { scores, masked, weights, o, logits };
}
