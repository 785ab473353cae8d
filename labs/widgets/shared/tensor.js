// A tensor as a widget's model describes it, in words and as matrices to draw.  No document.
//
// A `tensor` here is a plain record: name, shape, axes (one name each), values (flat, row-major), decimals,
// limit (the end of the colour scale), labels (axis name -> one list of letters, or one for each index of
// the first axis) and strings, of which only the section "tensor" is used.
import { flatIndex, format, indices, range, scaleFraction, unravel } from "./numbers.js";
import { fill } from "./dom.js";

/** The leading indices of the matrices that are shown while `picked` are the indices the reader picked. */
export function shownMatrices(shape, picked) {
  return indices(shape.slice(picked.length, -2)).map((index) => [...picked, ...index]);
}

/** The letter of an index on an axis, or null; letters may differ with `first`, the index on axis 0. */
export function labelOf(labels, axis, index, first) {
  const lists = labels[axis];
  if (lists === undefined) return null;
  return lists[lists.length === 1 ? 0 : first][index];
}

/** An axis in the name of a shape, as the course writes it: "b" is B, "dh" is dh. */
export function sizeName(axis) {
  return axis.length === 1 ? axis.toUpperCase() : axis;
}

/** What an index on an axis counts: "position". */
export function axisWord(tensor, axis) {
  return tensor.strings.tensor[`axis_${axis}`] ?? axis;
}

/** An index on an axis in words: `position 2`, or `position 2 "e"` where it has a letter. */
export function placeWords(tensor, axis, index, first) {
  const texts = tensor.strings.tensor;
  const label = labelOf(tensor.labels, axis, index, first);
  const template = label === null ? texts.place : texts.place_labelled;
  return fill(template, { axis: axisWord(tensor, axis), index, label });
}

/** `X[0,2,5] = -0.31`, and where its axes have letters: `X[0,2,5] = -0.31: position 2 "e"`. */
export function sentence(tensor, flat) {
  const index = unravel(flat, tensor.shape);
  const value = format(tensor.values[flat], tensor.decimals);
  const texts = tensor.strings.tensor;
  const number = fill(texts.number, { name: tensor.name, index: index.join(","), value });
  const places = tensor.axes.flatMap((axis, a) =>
    axis in tensor.labels ? [placeWords(tensor, axis, index[a], index[0])] : [],
  );
  return places.length === 0 ? number : fill(texts.number_at, { number, places: places.join(", ") });
}

/** The headers of an axis for a grid: one { index, label } for each of its indices. */
export function axisHeaders(tensor, a, first) {
  const axis = tensor.axes[a];
  const header = (index) => ({ index, label: labelOf(tensor.labels, axis, index, first) });
  return range(tensor.shape[a]).map(header);
}

/** What a reader chooses from on an axis: its indices, with their letters where these are always the same. */
export function optionsOf(tensor, a) {
  const shared = (tensor.labels[tensor.axes[a]] ?? []).length === 1;
  return axisHeaders(tensor, a, 0).map(({ index, label }) => (shared ? `${index} ${label}` : `${index}`));
}

/** A number as text, or in words what is none. */
export function numberText(value, decimals, { attention }) {
  if (Number.isNaN(value)) return attention.not_a_number;
  return value === -Infinity ? attention.minus_infinity : format(value, decimals);
}

/** What a grid shows of the matrix with these leading indices: a part of the `spec` of `tensorGrid`. */
export function matrixSpec(tensor, leading) {
  const { shape, axes, name, decimals, limit, values } = tensor;
  const single = shape.length === 1;
  const first = leading[0] ?? 0;
  const [rows, columns] = single ? [1, shape[0]] : shape.slice(-2);
  const cell = (row, column) => {
    const flat = flatIndex(single ? [column] : [...leading, row, column], shape);
    return { id: flat, text: format(values[flat], decimals), share: scaleFraction(values[flat], limit) };
  };
  return {
    label: leading.length === 0 ? name : `${name}[${leading.join(",")}]`,
    caption:
      leading.length === 0
        ? null
        : leading.map((index, a) => placeWords(tensor, axes[a], index, first)).join(", "),
    corner: [single ? null : axes.at(-2), axes.at(-1)],
    rows: single ? [{ index: null, label: null }] : axisHeaders(tensor, shape.length - 2, first),
    columns: axisHeaders(tensor, shape.length - 1, first),
    groups: null,
    cells: range(rows).map((row) => range(columns).map((column) => cell(row, column))),
  };
}
