// Arithmetic on shapes and numbers.  No document, no model: tested without a browser.

/** The number with a fixed count of decimals; what rounds to zero has no sign ("0.00", never "-0.00"). */
export function format(value, decimals) {
  const text = value.toFixed(decimals);
  return Number(text) === 0 ? text.replace("-", "") : text;
}

/** Where a value lies on a scale from -limit to limit, as a number from -1 to 1. */
export function scaleFraction(value, limit) {
  return Math.max(-1, Math.min(1, value / limit));
}

/** How many steps in the flat array one step along each axis takes, row-major: [2,5,8] -> [40,8,1]. */
export function strides(shape) {
  const steps = Array(shape.length).fill(1);
  for (let axis = shape.length - 2; axis >= 0; axis--) steps[axis] = steps[axis + 1] * shape[axis + 1];
  return steps;
}

/** The position in the flat array of the element at `index`. */
export function flatIndex(index, shape) {
  const steps = strides(shape);
  return index.reduce((sum, i, axis) => sum + i * steps[axis], 0);
}

/** The index of the element at position `flat` of the flat array. */
export function unravel(flat, shape) {
  return strides(shape).map((step, axis) => Math.floor(flat / step) % shape[axis]);
}

/** How many elements an array of this shape has. */
export function count(shape) {
  return shape.reduce((product, size) => product * size, 1);
}

/** Every index of an array of this shape, in row-major order. */
export function indices(shape) {
  return Array.from({ length: count(shape) }, (_, flat) => unravel(flat, shape));
}

/** [0, 1, ..., size - 1]. */
export function range(size) {
  return Array.from({ length: size }, (_, index) => index);
}
