// The rotation of pairs that RoPE is made of, in both layouts that are in use.  No document.
import { range } from "./numbers.js";

/** θ of a pair in radians a position: base^(-2r/dh). */
export function pairSpeed(pair, width, base) {
  return base ** ((-2 * pair) / width);
}

/** The two columns of a pair: (2r, 2r+1) where pairs are "neighbours", (r, r + dh/2) by "halves". */
export function pairColumns(pair, width, layout) {
  return layout === "neighbours" ? [2 * pair, 2 * pair + 1] : [pair, pair + width / 2];
}

/** The pair that a column belongs to. */
export function pairOf(column, width, layout) {
  return layout === "neighbours" ? Math.floor(column / 2) : column % (width / 2);
}

/** The vector x (dh,) with each pair rotated by position × θ, as `labs.llm.model.rope` does for neighbours. */
export function rotatePairs(x, position, base, layout) {
  const y = [...x];
  for (const pair of range(x.length / 2)) {
    const [first, second] = pairColumns(pair, x.length, layout);
    const angle = position * pairSpeed(pair, x.length, base);
    y[first] = x[first] * Math.cos(angle) - x[second] * Math.sin(angle);
    y[second] = x[first] * Math.sin(angle) + x[second] * Math.cos(angle);
  }
  return y;
}

/** The sum of the products of two vectors. */
export function dotProduct(x, y) {
  return x.reduce((sum, number, index) => sum + number * y[index], 0);
}
