// The address of an entry of the trace, the part after "#" of a page: trace=dscores,b0,h1,3,2.
import { range } from "../shared/numbers.js";

const PREFIX = "trace=";

/** The page's address waits so many milliseconds for the reader to rest: browsers allow it few changes. */
const REST = 400;

/** So many characters of a wrong address are repeated. */
const LONGEST = 60;

/** The address of an entry: the key of its step, batch and head with their letters, and the rest of its index. */
export function traceAddress(key, { axes }, index) {
  const parts = index.map((n, a) => (axes[a] === "b" || axes[a] === "h" ? `${axes[a]}${n}` : `${n}`));
  return PREFIX + [key, ...parts].join(",");
}

/**
 * What an address means: { place, index }, where `index` is null if the address names a tensor alone, or with batch
 * and head alone: then { place, picked: { b, h } }.  Null for an address of something else; { wrong: text } for one
 * that names no entry of `steps`.  A key may leave out "blocks.0.".
 */
export function readAddress(fragment, steps) {
  const text = decoded(fragment.replace(/^#/, ""));
  if (!text.startsWith(PREFIX)) return null;
  const wrong = { wrong: quoted(text.slice(PREFIX.length)) };
  const [key, ...parts] = text.slice(PREFIX.length).split(",");
  const place = steps.findIndex((step) => step.key === key || step.key === `blocks.0.${key}`);
  if (place < 0) return wrong;
  const { axes, shape } = steps[place];
  const lettered = axes.filter((axis) => axis === "b" || axis === "h").length;
  if (parts.length !== 0 && parts.length !== lettered && parts.length !== axes.length) return wrong;
  const index = parts.map((part, a) => numberOf(part, axes[a]));
  if (index.some((n, a) => n === null || n >= shape[a])) return wrong;
  if (index.length === axes.length) return { place, index };
  return { place, index: null, picked: Object.fromEntries(range(index.length).map((a) => [axes[a], index[a]])) };
}

/** A text that is not too long to be read out. */
function quoted(text) {
  const letters = Array.from(text); // not half of a letter that is two units long
  return letters.length <= LONGEST ? text : `${letters.slice(0, LONGEST - 1).join("")}…`;
}

/** A text without its %20 and the like; as it is where they are no text. */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function numberOf(part, axis) {
  const letter = axis === "b" || axis === "h" ? axis : "";
  const found = part.match(/^([a-z]?)(\d{1,6})$/);
  return found && found[1] === letter ? Number(found[2]) : null;
}

/**
 * Keep the page's address and a view in step: `read(fragment)` hears every address, also the first one; the
 * returned `write(address)` puts one into the page, a little later and without a new place in its history.
 *
 * Only in a built page, where there is `self.labsHost`: in Jupyter the address is Jupyter's.  And only for the
 * first view of the page, `root` being one of those that match `selector`.
 */
export function linkAddress(root, selector, read) {
  const isFirst = () => document.querySelector(selector) === root;
  if (!self.labsHost) return { write() {}, close() {} };
  let timer = 0;
  const listen = () => {
    if (isFirst() && location.hash) read(location.hash);
  };
  let frame = 0;
  const start = () => {
    const ready = document.documentElement.dataset.labsWidgets === "ready"; // all views are drawn
    frame = requestAnimationFrame(ready ? listen : start);
  };
  start();
  addEventListener("hashchange", listen);
  return {
    write(address) {
      clearTimeout(timer);
      if (!isFirst()) return;
      timer = setTimeout(() => history.replaceState(history.state, "", `#${address}`), REST);
    },
    close() {
      cancelAnimationFrame(frame);
      clearTimeout(timer);
      removeEventListener("hashchange", listen);
    },
  };
}
