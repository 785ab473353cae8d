// Where each number lands when the columns of a tensor (B,T,D) are split into heads (B,H,T,dh).  No document.
import { fill } from "../shared/dom.js";
import { flatIndex, format, indices, range, unravel } from "../shared/numbers.js";
import { axisHeaders, placeWords } from "../shared/tensor.js";

/** As many tints as the palette has for heads; the headers name the head, so a tint may come again. */
const TINTS = 4;

const tint = (head) => `labs-head-${head % TINTS}`;

/** The shapes that a route goes through, each as { letters, sizes }, dh = D / H. */
export function headSplitPath(route, [B, T, D], H) {
  const dh = D / H;
  const start = { letters: ["B", "T", "D"], sizes: [B, T, D] };
  const split = { letters: ["B", "T", "H", "dh"], sizes: [B, T, H, dh] };
  const end = { letters: ["B", "H", "T", "dh"], sizes: [B, H, T, dh] };
  return route === "swap" ? [start, split, end] : [start, end];
}

/**
 * Which number of x (B,T,D) stands at each place of the result (B,H,T,dh), both counted in the flat array.
 *
 *   "swap"    x.reshape(B,T,H,dh).swapaxes(1,2)   heads[b,h,t,e] = x[b,t,h*dh+e]
 *   "direct"  x.reshape(B,H,T,dh)                 the flat order stays as it is
 */
export function headSplitOrigin(route, shape, H) {
  const [B, T, D] = shape;
  const dh = D / H;
  return indices([B, H, T, dh]).map(([b, h, t, e], flat) =>
    route === "swap" ? flatIndex([b, t, h * dh + e], shape) : flat,
  );
}

/** Where the number at `flat` of x (B,T,D) belongs: [batch, head, position, column in the head]. */
export function headSplitHome(flat, shape, H) {
  const [b, t, d] = unravel(flat, shape);
  const dh = shape[2] / H;
  return [b, Math.floor(d / dh), t, d % dh];
}

/** Whether each place holds the number that belongs there, for an arrangement from `headSplitOrigin`. */
export function rightlyPlaced(origin, shape, H) {
  const right = headSplitOrigin("swap", shape, H);
  return origin.map((flat, place) => flat === right[place]);
}

/**
 * What the widget shows, from what its model holds:
 *   shape, n_heads, route, show, batch, selected, name, values, labels, decimals   as in Python
 *   strings   "tensor" and "head_split", which becomes "own"
 * To it are added the sizes, the arrangement that the route leads to, and which places are right in it.
 */
export function headSplitState(held) {
  const { shape, n_heads: H, route, strings } = held;
  const [B, T, D] = shape;
  const origin = headSplitOrigin(route, shape, H);
  const right = rightlyPlaced(origin, shape, H);
  const texts = { ...strings, own: strings.head_split };
  return { ...held, strings: texts, axes: ["b", "t", "d"], B, T, D, H, dh: D / H, origin, right };
}

/** The text of a cell: its number, or the position and column that it comes from. */
function cellText(state, flat) {
  const [, t, d] = unravel(flat, state.shape);
  return state.show === "values" ? format(state.values[flat], state.decimals) : `${t},${d}`;
}

/** A cell for the number at `flat`, tinted by the head that it belongs to. */
function cellOf(state, flat, right) {
  const [, head] = headSplitHome(flat, state.shape, state.H);
  const className = right ? tint(head) : `${tint(head)} labs-wrong`;
  return { id: flat, text: cellText(state, flat), share: null, className };
}

/** The grid of the chosen batch before the split: positions by columns, with the heads over the columns. */
export function sourceSpec(state) {
  const { batch, T, D, H, dh, name, shape } = state;
  return {
    label: `${name}[${batch}]`,
    caption: `${name}, ${placeWords(state, "b", batch, batch)}`,
    corner: ["t", "d"],
    rows: axisHeaders(state, 1, batch),
    columns: axisHeaders({ ...state, labels: {} }, 2, batch),
    groups: range(H).map((head) => ({
      text: placeWords(state, "h", head, batch),
      span: dh,
      className: tint(head),
    })),
    cells: range(T).map((t) => range(D).map((d) => cellOf(state, flatIndex([batch, t, d], shape), true))),
  };
}

/** The grid of one head after the split: what the code takes for positions, by the columns of the head. */
export function headSpec(state, batch, head) {
  const { B, H, T, dh, origin, right, strings } = state;
  const place = (t, e) => flatIndex([batch, head, t, e], [B, H, T, dh]);
  return {
    label: `${strings.own.result}[${batch},${head}]`,
    caption: [placeWords(state, "b", batch, batch), placeWords(state, "h", head, batch)].join(", "),
    corner: ["t", "e"],
    rows: axisHeaders(state, 1, batch),
    columns: range(dh).map((index) => ({ index, label: null })),
    groups: null,
    cells: range(T).map((t) => range(dh).map((e) => cellOf(state, origin[place(t, e)], right[place(t, e)]))),
  };
}

/** "Q[0,2,5] lands at heads[0,1,2,1]: batch 0, head 1, ...", and where it belongs if that is elsewhere. */
export function landing(state, flat) {
  const { B, H, T, dh, origin, shape, name, route, strings } = state;
  const target = unravel(origin.indexOf(flat), [B, H, T, dh]);
  const home = headSplitHome(flat, shape, H);
  const axes = ["b", "h", "t", "dh"];
  const words = (index) => axes.map((axis, a) => placeWords(state, axis, index[a], index[0]));
  const lands = fill(strings.own.lands, {
    name,
    source: unravel(flat, shape).join(","),
    result: strings.own.result,
    target: target.join(","),
    places: words(target).join(", "),
  });
  if (target.join() === home.join()) return route === "swap" ? lands : `${lands} ${strings.own.by_luck}`;
  const [, head, position] = words(home); // its column in the head is right on either route
  return `${lands} ${fill(strings.own.elsewhere, { places: `${head}, ${position}` })}`;
}
