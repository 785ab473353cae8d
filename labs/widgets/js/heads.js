// Where each number lands when the columns of a tensor (B,T,D) are split into heads (B,H,T,dh).  No document.
import { flatIndex, indices, unravel } from "./numbers.js";

/** The shapes that a route goes through, each as { letters, sizes }, dh = D / H. */
export function headSplitPath(route, [B, T, D], H) {
  const dh = D / H;
  const start = { letters: ["B", "T", "D"], sizes: [B, T, D] };
  const split = { letters: ["B", "T", "H", "dh"], sizes: [B, T, H, dh] };
  const end = { letters: ["B", "H", "T", "dh"], sizes: [B, H, T, dh] };
  return route === "swap" ? [start, split, end] : [start, end];
}

/**
 * Which number of x (B,T,D) stands at each place of the result (B,H,T,dh); both as positions in the flat array.
 *
 *   "swap"    x.reshape(B,T,H,dh).swapaxes(1,2)   heads[b,h,t,e] = x[b,t,h*dh+e]
 *   "direct"  x.reshape(B,H,T,dh)                 the flat order stays as it is
 */
export function headSplitOrigin(route, shape, H) {
  const [B, T, D] = shape;
  const dh = D / H;
  const origin = ([b, h, t, e]) => flatIndex([b, t, h * dh + e], shape);
  return indices([B, H, T, dh]).map((index, flat) => (route === "swap" ? origin(index) : flat));
}

/** The index at which the number at `flat` of x (B,T,D) belongs: [batch, head, position, column in the head]. */
export function headSplitHome(flat, shape, H) {
  const [b, t, d] = unravel(flat, shape);
  const dh = shape[2] / H;
  return [b, Math.floor(d / dh), t, d % dh];
}

/** For an arrangement as `headSplitOrigin` gives it, whether each place holds the number that belongs there. */
export function rightlyPlaced(origin, shape, H) {
  const right = headSplitOrigin("swap", shape, H);
  return origin.map((flat, place) => flat === right[place]);
}
