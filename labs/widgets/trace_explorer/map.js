// The map of the widget TraceExplorer: the parts of the model, with a stop for every tensor.
import { element, fill, setAttribute } from "../shared/dom.js";
import { shortKey, sizeLetters } from "./state.js";

/** The parts from top to bottom: on the residual stream, in a branch beside it, where the two add up, after it. */
const LANES = [
  { kind: "stream", parts: ["embedding"] },
  { kind: "branch", parts: ["attn_norm", "attention"] },
  { kind: "add", parts: ["attn_add"] },
  { kind: "branch", parts: ["ffn_norm", "swiglu"] },
  { kind: "add", parts: ["ffn_add"] },
  { kind: "stream", parts: ["final_norm", "unembedding", "loss"] },
];

function partNames({ own }) {
  return {
    embedding: own.part_embedding,
    attn_norm: own.part_norm,
    attention: own.part_attention,
    attn_add: own.part_add,
    ffn_norm: own.part_norm,
    swiglu: own.part_swiglu,
    ffn_add: own.part_add,
    final_norm: own.part_norm,
    unembedding: own.part_unembedding,
    loss: own.part_loss,
  };
}

/** Which pass the map shows: what is given belongs to the forward pass. */
export function mapPhase({ current }) {
  return current.phase === "backward" ? "backward" : "forward";
}

/**
 * The lanes of the map: { kind, parts: [{ part, title, stops }] }, a stop { place, under }: the place of its step,
 * and of the tensor whose gradient it is, or null.
 *
 * Forward, the stops of a part are what is computed in it, and before each what is given and first read there.
 * Backward, they are the gradients in it, the last one first, so that the walk goes from the bottom up; and the
 * tensors without a gradient that some gradient reads.
 */
export function mapLanes(state) {
  const names = partNames(state.strings);
  const stops = mapPhase(state) === "forward" ? forwardStops(state) : backwardStops(state);
  const inPart = (part) => stops.filter(({ place }) => partOf(state.steps[place]) === part);
  return LANES.map(({ kind, parts }) => ({
    kind,
    parts: parts.map((part) => ({ part, title: names[part], stops: inPart(part) })),
  }));
}

/** The small line of a stop: its shape; in the backward pass the tensor whose gradient it is, or a share of that. */
export function smallLine(state, { place }) {
  const { of, shape } = state.steps[place];
  if (mapPhase(state) === "forward") return shape.join(",");
  return of === null ? "" : fill(state.strings.own.gradient_of, { name: state.steps[state.places.get(of)].name });
}

/** The part of the map that a step is in: the tokens are with the embedding that reads them. */
function partOf({ part }) {
  return part === "tokens" ? "embedding" : part;
}

function isShown({ layer: shown }, { layer }) {
  return layer === null || layer === shown;
}

function forwardStops(state) {
  const { steps, reader } = state;
  const order = (place) => (steps[place].phase === "given" ? (reader.get(place) ?? 0) - 0.5 : place);
  return [...steps.keys()]
    .filter((place) => steps[place].phase !== "backward" && isShown(state, steps[place]))
    .toSorted((a, b) => order(a) - order(b))
    .map((place) => ({ place, under: null }));
}

function backwardStops(state) {
  const { steps, places } = state;
  const shown = [...steps.keys()].filter((place) => isShown(state, steps[place]));
  const gradients = shown.filter((place) => steps[place].phase === "backward").reverse();
  const under = (place) => {
    const tensor = places.get(steps[place].of);
    return tensor !== undefined && steps[place].name === `d${steps[tensor].name}` ? tensor : null;
  };
  const stops = gradients.map((place) => ({ place, under: under(place) }));
  const covered = new Set(stops.map((stop) => stop.under));
  const read = new Set(gradients.flatMap((place) => Object.values(steps[place].reads).map((key) => places.get(key))));
  const rest = shown.filter((place) => steps[place].phase !== "backward" && read.has(place) && !covered.has(place));
  return [...rest.map((place) => ({ place, under: null })), ...stops];
}

/** The stop of what a part hands on in the forward pass, or of its gradient: all that a narrow page shows of it. */
function lastStop(stops) {
  const order = ({ place, under }) => under ?? place;
  const tensors = stops.some(({ under }) => under !== null) ? stops.filter(({ under }) => under !== null) : stops;
  return tensors.toSorted((a, b) => order(b) - order(a))[0];
}

/** What is to be seen of a stop: { current, source, underSource, done }. */
export function stopLook(state, { place, under }) {
  const { current, places, step, steps } = state;
  const read = new Set(Object.values(current.reads).map((key) => places.get(key)));
  return {
    current: place === step,
    source: read.has(place),
    underSource: under !== null && read.has(under),
    done: place < step && steps[place].phase !== "given",
  };
}

/** What a screen reader calls a stop: its tensor by its full name, and what is to be seen of it. */
export function stopLabel(state, { place, under }, look) {
  const { own } = state.strings;
  const { steps } = state;
  const [name, sizes] = [shortKey(state, steps[place].key), sizeLetters(steps[place]).join(",")];
  return [
    sizes === "" ? name : fill(own.stop, { name, sizes }),
    look.current ? own.look_current : [],
    look.source ? own.look_source : [],
    look.underSource ? fill(own.look_under_source, { name: shortKey(state, steps[under].key) }) : [],
    look.done ? own.look_done : [],
  ]
    .flat()
    .join(", ");
}

/** The node in the next row below `from`, or above it, that stands nearest to it, or undefined. */
function inNextRow(nodes, from, isDown) {
  const boxes = new Map(nodes.map((node) => [node, node.getBoundingClientRect()]));
  const start = boxes.get(from);
  const away = (node) => {
    const { top, bottom } = boxes.get(node);
    return isDown ? top - start.bottom : start.top - bottom;
  };
  const aside = (node) => Math.abs(boxes.get(node).x + boxes.get(node).width / 2 - start.x - start.width / 2);
  const beyond = nodes.filter((node) => away(node) > -1); // whole pixels do not count
  const next = Math.min(...beyond.map(away));
  return beyond.filter((node) => away(node) < next + 1).toSorted((a, b) => aside(a) - aside(b))[0];
}

/**
 * Draw the map in `el`.  `go(place)` hears which step the reader wants.  Returns { update(state) }; only another
 * pass or layer builds it anew.
 *
 * One of its buttons is in reach of Tab; the arrow keys, up and down from row to row, Home and End move among them.
 */
export function traceMap(el, { own }, go) {
  const root = element("div", { class: "labs-map", role: "toolbar", "aria-label": own.map_label });
  el.append(root);
  let built = "";
  let stops = []; // { stop, node, part }
  let buttons = [];

  function build(state) {
    stops = [];
    root.replaceChildren(...mapLanes(state).map((lane) => laneNode(state, lane)));
    root.classList.toggle("labs-is-backward", mapPhase(state) === "backward");
    buttons = [...root.querySelectorAll("button")];
  }

  function laneNode(state, { kind, parts }) {
    return element("div", { class: `labs-lane labs-${kind}` }, ...parts.map((part) => partNode(state, part)));
  }

  function partNode(state, { title, stops: shown }) {
    const entry = mapPhase(state) === "forward" ? shown.find(({ place }) => state.walk.includes(place)) : shown.at(-1);
    const name = element("button", { type: "button", class: "labs-part-name", tabindex: -1 }, title);
    name.addEventListener("click", () => go((entry ?? shown[0]).place));
    const part = element("div", { class: "labs-part" }, name);
    const nodes = shown.map((stop) => stopNode(state, stop, part));
    nodes[shown.indexOf(lastStop(shown))].classList.add("labs-last");
    part.append(element("div", { class: "labs-stops" }, ...nodes));
    return part;
  }

  function stopNode(state, stop, part) {
    const { name, role, phase } = state.steps[stop.place];
    const node = element(
      "button",
      {
        type: "button",
        class: phase === "given" ? "labs-stop labs-given" : "labs-stop",
        style: `--labs-role:var(--labs-role-${role})`,
        tabindex: -1,
        title: `${name} (${sizeLetters(state.steps[stop.place]).join(",")})`,
        translate: "no",
      },
      element("span", { class: "labs-stop-name" }, name),
      element("span", { class: "labs-stop-below" }, smallLine(state, stop)),
    );
    node.addEventListener("click", () => go(stop.place));
    stops.push({ stop, node, part });
    return node;
  }

  function reach(node) {
    for (const each of buttons) setAttribute(each, "tabindex", each === node ? 0 : -1);
  }

  /** The button that a key leads to from one of those that are shown, or undefined. */
  function goal(key, from) {
    const shown = buttons.filter((each) => each.offsetParent !== null);
    const at = shown.indexOf(from);
    if (key === "Home") return shown[0];
    if (key === "End") return shown.at(-1);
    if (key === "ArrowUp" || key === "ArrowDown") return inNextRow(shown, from, key === "ArrowDown");
    return shown[key === "ArrowLeft" ? at - 1 : at + 1];
  }

  root.addEventListener("keydown", (event) => {
    if (!/^(Arrow(Up|Down|Left|Right)|Home|End)$/.test(event.key)) return;
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const target = goal(event.key, event.target);
    if (target) {
      reach(target);
      target.focus();
    }
    event.preventDefault();
    event.stopPropagation();
  });

  return {
    update(state) {
      const wanted = `${mapPhase(state)} ${state.layer}`;
      if (wanted !== built) build(state);
      built = wanted;
      for (const { part } of stops) part.classList.remove("labs-here");
      for (const { stop, node, part } of stops) {
        const look = stopLook(state, stop);
        node.classList.toggle("labs-current", look.current);
        node.classList.toggle("labs-source", look.source);
        node.classList.toggle("labs-under-source", look.underSource);
        node.classList.toggle("labs-done", look.done);
        setAttribute(node, "aria-label", stopLabel(state, stop, look));
        setAttribute(node, "aria-current", look.current ? "step" : null);
        if (look.current) {
          part.classList.add("labs-here");
          reach(node);
        }
      }
    },
  };
}
