// The two pictures of RopeExplorer: a pair on its circle, and the score over the distance.
import { svgElement } from "../shared/dom.js";
import { format, range } from "../shared/numbers.js";
import { LAST_POSITION, chosenPair, roundMark, scoreCurve } from "./state.js";

const point = ([x, y]) => `${x.toFixed(2)},${y.toFixed(2)}`;
const polyline = (className, points) =>
  svgElement("polyline", { class: className, points: points.map(point).join(" ") });
const line = (className, [x1, y1], [x2, y2]) => svgElement("line", { class: className, x1, y1, x2, y2 });
const label = (className, [x, y], text, anchor = "middle") =>
  svgElement("text", { class: className, x, y, dy: "0.35em", "text-anchor": anchor }, text);

// ---- the circle: the origin is in the middle, the longest vector reaches RIM --------------------------------

const SIDE = 208;
const RIM = 76;

/** How far out each vector's angle is drawn, and how far its letter is from its tip, so that none overlap. */
const VECTORS = {
  v: { arc: 0.18, beyond: -16, aside: 10 },
  k: { arc: 0.3, beyond: 9, aside: -8 },
  q: { arc: 0.42, beyond: 9, aside: 8 },
};

/**
 * A point of the plane in the picture, whose second axis points down.
 * @returns {[number, number]}
 */
const polar = (radius, angle) => [radius * Math.cos(angle), -radius * Math.sin(angle)];

/** The circle with the chosen pair of q, k and v: dashed before rotation, solid after it. */
export function drawCircle(svg, state) {
  const lengths = Object.keys(VECTORS).map((name) => Math.hypot(...chosenPair(state, state[name], name)));
  const scale = RIM / (Math.max(...lengths) || 1);
  const far = SIDE / 2;
  svg.replaceChildren(
    line("labs-axis", [-far, 0], [far, 0]),
    line("labs-axis", [0, -far], [0, far]),
    ...Object.keys(VECTORS).map((name) => vectorOnCircle(state, name, scale)),
  );
}

function vectorOnCircle(state, name, scale) {
  const { arc, beyond, aside } = VECTORS[name];
  const [x, y] = chosenPair(state, state[name], name);
  const radius = scale * Math.hypot(x, y);
  const start = Math.atan2(y, x);
  const angle = state.positions[name] * state.speed;
  const end = start + angle;
  const [alongX, alongY] = polar(1, end);
  const tip = polar(radius, end);
  const steps = 60;
  const shown = Math.min(angle, 2 * Math.PI); // once around says enough: the table has the number
  const way = range(steps + 1).map((step) => polar(arc * RIM, start + (shown * step) / steps));
  return svgElement(
    "g",
    { class: `labs-vector labs-vector-${name}` },
    svgElement("circle", { class: "labs-orbit", r: radius }),
    line("labs-before", [0, 0], polar(radius, start)),
    polyline("labs-arc", way),
    line("labs-after", [0, 0], tip),
    svgElement("circle", { class: "labs-tip", cx: tip[0], cy: tip[1], r: 4 }),
    label(
      "labs-vector-name",
      [tip[0] + beyond * alongX - aside * alongY, tip[1] + beyond * alongY + aside * alongX],
      name,
    ),
  );
}

export const circleBox = `${-SIDE / 2} ${-SIDE / 2} ${SIDE} ${SIDE}`;

// ---- the curve: distances from left to right, scores upwards ------------------------------------------------

const CURVE = { width: 384, height: 208, left: 36, right: 8, top: 22, bottom: 34 };

export const curveBox = `0 0 ${CURVE.width} ${CURVE.height}`;

/** The score over n - m; if layouts are mixed, the right one stays as a dashed line. */
export function drawCurve(svg, state) {
  const { m, n, mixed, score, strings } = state;
  const limit = state.bound || 1;
  const { width, height, left, right, top, bottom } = CURVE;
  const x = (distance) => left + ((distance + LAST_POSITION) / (2 * LAST_POSITION)) * (width - left - right);
  const y = (value) => top + ((1 - value / limit) / 2) * (height - top - bottom);
  const place = ([distance, value]) => [x(distance), y(value)];
  const mark = roundMark(limit);
  const decimals = Math.max(0, -Math.floor(Math.log10(mark)));
  const all = scoreCurve(state, 0, -LAST_POSITION, LAST_POSITION, "neighbours");
  const mixedUp = mixed ? scoreCurve(state, m, 0, LAST_POSITION, "halves") : [];
  svg.replaceChildren(
    ...[-mark, 0, mark].flatMap((value) => [
      line("labs-axis", [left, y(value)], [width - right, y(value)]),
      label("labs-tick", [left - 5, y(value)], format(value, decimals), "end"),
    ]),
    ...[-60, -40, -20, 0, 20, 40, 60].map((distance) =>
      label("labs-tick", [x(distance), height - bottom + 8], String(distance)),
    ),
    label("labs-tick", [left, 9], strings.own.curve_score, "start"),
    label("labs-tick", [width - right, 9], mixed ? strings.own.curve_dotted : "", "end"),
    label("labs-tick", [width - right, height - 9], strings.own.curve_distance, "end"),
    line("labs-here", [x(n - m), top], [x(n - m), height - bottom]),
    polyline(mixed ? "labs-curve labs-right-curve" : "labs-curve", all.map(place)),
    polyline("labs-curve labs-wrong-curve", mixedUp.map(place)),
    svgElement("circle", { class: "labs-point", cx: x(n - m), cy: y(score), r: 5 }),
  );
}
