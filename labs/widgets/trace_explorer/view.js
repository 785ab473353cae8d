// The widget TraceExplorer: every number of one forward and one backward pass, and how each of them comes about.
import { element, fill, part, setText } from "../shared/dom.js";
import { numberTable, tensorGrid, textTable } from "../shared/grid.js";
import { range } from "../shared/numbers.js";
import { button, choice, fold, indexChoices, save, slider, tensorTitle } from "../shared/parts.js";
import { mountView } from "../shared/view.js";
import { linkAddress, readAddress, traceAddress } from "./address.js";
import { mapPhase, traceMap } from "./map.js";
import { currentSpec, entryFormula, entrySentence, entryText, shortKey, sizeLetters } from "./state.js";
import { cellIndex, currentMatrix, idleChoices, sourcesOf, stepSentence, termsOfEntry } from "./state.js";
import { entryBefore, readersOf, readTrace, traceState } from "./state.js";
import { firstOf, neighbour, sameInLayer, valuesAt, valuesAtEntry, walkPosition } from "./state.js";

const given = ["sizes", "layers", "labels"];
const chosen = ["step", "layer", "batch", "head", "selected", "trail"];

/** The reader can go back so many times. */
const LONGEST_TRAIL = 50;

/** The elements of the widget, those by name that are filled later. */
function frame({ own }, status) {
  const matrix = part("div", "labs-matrix");
  const entry = part("div", "labs-entry");
  const title = part("p", "labs-title");
  const actions = part("div", "labs-actions");
  const terms = part("div", "labs-terms");
  const parts = {
    intro: part("p", "labs-intro", own.intro),
    walk: part("div", "labs-controls labs-walk"),
    map: part("div", "labs-map-box"),
    pickers: part("div", "labs-controls"),
    head: part("div", "labs-head", title, actions),
    note: element("p", { class: "labs-note", role: "status" }),
    copied: element("textarea", { class: "labs-copied", readonly: "", hidden: "", "aria-label": own.copy }),
    about: part("p", "labs-about"),
    readers: part("p", "labs-readers"),
    detail: part("div", "labs-detail", matrix, entry),
    status,
    heading: part("p", "labs-heading", own.sources, part("span", "labs-hint", own.choose_source)),
    origin: part("div", "labs-origin", terms),
  };
  const root = part("div", "labs-root labs-trace-explorer", ...Object.values(parts));
  return { ...parts, title, actions, terms, matrix, entry, root };
}

/** The buttons, the slider and the choices: `move(values)` hears the reader, `update(state)` shows the state. */
function addControls({ walk, pickers }, view, move) {
  const { model, state: first } = view;
  const { sizes, labels, strings } = first;
  const { own } = strings;
  const stepBy = (by) => () => move(valuesAt(view.state, neighbour(view.state, by)));
  const previous = button(walk, own.previous, stepBy(-1));
  const next = button(walk, own.next, stepBy(1));
  const scrub = slider(walk, own.step, [1, first.walk.length], (number) =>
    move(valuesAt(view.state, first.walk[number - 1])),
  );
  const updates = [];
  if (firstOf(first, "backward") !== null) {
    const phases = ["forward", "backward"];
    const toPhase = (index) => move(valuesAt(view.state, firstOf(view.state, phases[index])));
    const phase = choice(pickers, own.pass, [own.forward, own.backward], toPhase);
    updates.push((state) => phase.update(phases.indexOf(mapPhase(state))));
  }
  if (first.layers > 1) {
    const toLayer = (layer) => {
      const place = sameInLayer(view.state, layer);
      move(place === null ? { layer } : valuesAt(view.state, place));
    };
    const layer = choice(pickers, own.layer, range(first.layers).map(String), toLayer);
    updates.push((state) => layer.update(state.layer));
  }
  const leading = { axes: ["b", "h"], shape: [sizes.B, sizes.H], labels, strings };
  const indices = indexChoices(pickers, leading, ["batch", "head"], model);
  return {
    update(state) {
      previous.update(neighbour(state, -1) !== null);
      next.update(neighbour(state, 1) !== null);
      const number = walkPosition(state) + 1;
      scrub.update(number, fill(own.step_of, { number, all: state.walk.length }));
      for (const update of updates) update(state);
      indices.update(state, idleChoices(state));
    },
  };
}

/** How the selected entry comes about, in four lines.  Returns { update(state) }. */
function addFormula(el) {
  const line = (className) => element("p", { class: className, translate: "no" });
  const [symbols, placed, filled] = [line("labs-symbols"), line("labs-placed"), line("labs-filled")];
  const number = element("b", { translate: "no" });
  const exact = element("span");
  const result = part("p", "labs-result", number, " ", exact);
  const remarks = part("p", "labs-remarks");
  el.append(symbols, placed, filled, result, remarks);
  return {
    update(state) {
      const formula = entryFormula(state);
      symbols.replaceChildren(...colored(state, formula.symbols));
      placed.replaceChildren(...colored(state, formula.placed));
      setText(filled, formula.filled);
      setText(number, formula.result);
      setText(exact, formula.exact);
      setText(remarks, formula.remarks.join(" "));
    },
  };
}

/** The nodes of a formula: names of tensors in the colours of their roles, `_(...)` set low. */
function colored(state, text) {
  const { current, steps, places } = state;
  const roles = { [current.name]: current.role };
  for (const [name, key] of Object.entries(current.reads)) roles[name] = steps[places.get(key)].role;
  return text.split(/(_\([^()]*\)|[A-Za-z](?:(?!_\()\w)*)/).map((piece) => {
    if (piece.startsWith("_(")) return element("sub", {}, ...colored(state, piece.slice(2, -1)));
    const role = Object.hasOwn(roles, piece) ? roles[piece] : undefined;
    return role === undefined ? piece : element("span", { style: `color:var(--labs-role-${role})` }, piece);
  });
}

/** Which steps read the current tensor; `go(place)` hears where the reader wants to go.  Returns { update(state) }. */
function addReaders(el, go) {
  let shown = "";
  return {
    update(state) {
      const { name, places } = readersOf(state);
      const wanted = `${name} ${places}`;
      if (wanted === shown) return; // a button keeps the focus
      shown = wanted;
      const links = places.map((place) => {
        const { key, role } = state.steps[place];
        const attributes = { type: "button", class: "labs-link", translate: "no" };
        const style = `color:var(--labs-role-${role})`;
        const link = element("button", { ...attributes, style }, shortKey(state, key));
        link.addEventListener("click", () => go(place));
        return link;
      });
      const start = fill(state.strings.own.read_by, { name });
      el.replaceChildren(...(links.length === 0 ? [] : [start, ...links.flatMap((link) => [" ", link])]));
    },
  };
}

/** The terms that add up to the selected entry.  Returns { update(state) }. */
function addTerms(el) {
  const title = part("p", "labs-terms-title");
  const box = element("div", { class: "labs-grid-box", tabindex: 0, role: "group" });
  const result = part("p", "labs-terms-result");
  el.append(title, box, result);
  const table = numberTable(box);
  return {
    update(state) {
      const terms = termsOfEntry(state);
      el.hidden = terms === null;
      if (terms === null) return;
      setText(title, terms.title);
      box.setAttribute("aria-label", terms.title);
      box.hidden = terms.table.rows.length === 0;
      table.update(terms.table);
      setText(result, terms.result);
    },
  };
}

/**
 * The matrices that the selected entry was computed from, with what was read in them.  `point(place, index)` and
 * `follow(place, index)` hear the reader.  Returns { update(state), reveal(), destroy() }; `reveal` scrolls wide
 * matrices to what was read.
 */
function addSources(el, { point, follow }) {
  let slots = new Map(); // "place:leading" -> { root, grid, source }: a matrix that stays is only brought up to date

  function slot(state, source) {
    const made = { source };
    const at = (id) => [made.source.place, cellIndex(state, made.source, id)];
    const handlers = {
      point: (id) => (id < 0 ? point(null) : point(...at(id))),
      select: (id) => id >= 0 && follow(...at(id)),
    };
    const style = `color:var(--labs-role-${state.steps[source.place].role})`;
    const title = element("p", { class: "labs-source-title", translate: "no", style }, source.spec.label);
    made.root = part("div", "labs-source-tensor", title);
    made.grid = tensorGrid(made.root, source.spec, handlers);
    return made;
  }

  function drop({ root, grid }) {
    grid.destroy();
    root.remove();
  }

  return {
    update(state) {
      const before = slots;
      slots = new Map();
      for (const source of sourcesOf(state)) {
        const key = `${source.place}:${source.leading}`;
        const kept = before.get(key) ?? slot(state, source);
        before.delete(key);
        kept.source = source;
        kept.grid.update(source.spec);
        slots.set(key, kept);
      }
      for (const gone of before.values()) drop(gone);
      [...slots.values()].forEach(({ root }, n) => {
        if (el.children[n + 1] !== root) el.insertBefore(root, el.children[n + 1] ?? null); // after the terms
      });
    },
    reveal() {
      for (const { grid, source } of slots.values()) grid.reveal(source.first);
    },
    destroy() {
      for (const each of slots.values()) drop(each);
    },
  };
}

/** How to use the keyboard, and in a built page how to link to an entry, under a fold. */
function addHelp(el, { own }) {
  const lines = [own.keys_grid, own.keys_map, own.keys_slider, ...(self.labsHost ? [own.links] : [])];
  const items = lines.map((line) => element("li", {}, line));
  const summary = element("summary", {}, own.help);
  el.append(element("details", { class: "labs-more" }, summary, element("ul", {}, ...items)));
}

/** Put a text on the clipboard; false where the browser does not allow it. */
async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

/** Scroll so that a node is the first thing in the window, below what the page keeps there (scroll-padding). */
function scrollToTop(node) {
  node.scrollIntoView({ block: "start", behavior: "instant" });
}

function keepInSight(node) {
  const { top, bottom } = node.getBoundingClientRect();
  const kept = parseFloat(getComputedStyle(document.documentElement).scrollPaddingTop) || 0; // "auto" is none
  if (top < kept || bottom > innerHeight) scrollToTop(node);
}

function build(view) {
  const { model, state: first, status, draw, say, addGrids } = view;
  const { strings } = first;
  const { own } = strings;
  /** @type {string | null} */
  let address = null; // of what is shown
  /** @type {(() => void) | null} */
  let arrive = null; // what is to be done once after the next drawing

  const parts = frame(strings, status);
  const tell = (note) => setText(parts.note, note);
  const move = (values) => {
    tell("");
    save(model, values);
  };
  const point = (place, index) => {
    say(place === null ? null : (state) => entrySentence(state, state.steps[place], index));
  };
  const follow = (place, index) => {
    const { step, batch, head, selected } = view.state;
    const trail = [...model.get("trail"), [step, batch, head, selected]].slice(-LONGEST_TRAIL);
    arrive = () => {
      grid.focus();
      keepInSight(parts.head);
    };
    move({ ...valuesAtEntry(view.state, place, index), trail });
  };
  const goBack = () => {
    const trail = model.get("trail");
    const [step, batch, head, selected] = trail.at(-1);
    const { layer } = valuesAt(view.state, step);
    arrive = () => keepInSight(parts.head);
    move({ step, layer, batch, head, selected, trail: trail.slice(0, -1) });
  };
  const copy = async () => {
    const text = entryText(view.state);
    const done = await copied(text);
    tell(done ? own.copied : own.copy_by_hand);
    parts.copied.hidden = done;
    parts.copied.value = text;
    if (!done) parts.copied.select();
  };

  const controls = addControls(parts, view, move);
  const go = (place) => move(valuesAt(view.state, place));
  const map = traceMap(parts.map, strings, go);
  const readers = addReaders(parts.readers, go);
  const indexOf = (state, id) => cellIndex(state, currentMatrix(state), id);
  const [grid] = addGrids(parts.matrix, (state) => [currentSpec(state)], {
    follow: true,
    sentence: (state, id) => entrySentence(state, state.current, indexOf(state, id)),
    select: (id) => move(valuesAtEntry(view.state, view.state.step, indexOf(view.state, id))),
  });
  const formula = addFormula(parts.entry);
  const back = button(parts.actions, own.back, goBack);
  button(parts.actions, own.copy, copy);
  const terms = addTerms(parts.terms);
  const sources = addSources(parts.origin, { point, follow });
  const text = fold(parts.root, own.as_text);
  addHelp(parts.root, strings);

  const link = linkAddress(parts.root, ".labs-trace-explorer", (fragment) => {
    const found = readAddress(fragment, first.steps);
    if (found === null) return;
    if ("wrong" in found) tell(fill(own.wrong_address, { address: found.wrong }));
    else move(valuesOf(found));
    // a link to a tensor shows the map too; one to a number, and the note, what is below it
    arrive = () => scrollToTop(found.index === null ? parts.root : parts.head);
    draw();
  });

  /**
   * The model's values for what an address means.
   * @param {{ place: number, index: number[] | null, picked?: any }} found
   */
  function valuesOf({ place, index, picked }) {
    const before = view.state;
    if (index !== null) return valuesAtEntry(before, place, index);
    const { b = before.batch, h = before.head } = picked;
    return { ...valuesAt(before, place), batch: b, head: h };
  }

  function drawAddress(state) {
    const next = traceAddress(shortKey(state, state.current.key), state.current, state.entry);
    if (address !== null && address !== next) link.write(next);
    address = next;
  }

  return {
    root: parts.root,
    update(state, [spec]) {
      map.update(state);
      controls.update(state);
      parts.title.replaceChildren(tensorTitle({ ...state.current, axes: sizeLetters(state.current) }));
      setText(parts.about, stepSentence(state));
      readers.update(state);
      formula.update(state);
      terms.update(state);
      sources.update(state);
      parts.heading.hidden = parts.origin.querySelector(".labs-source-tensor") === null;
      const before = entryBefore(state);
      back.update(before !== null, before === null ? own.back : fill(own.back_to, { entry: before }));
      parts.copied.hidden = true;
      text.update(textTable(spec));
      grid.reveal(state.selected);
      sources.reveal();
      say(null);
      drawAddress(state);
      const last = arrive;
      arrive = null;
      last?.();
    },
    destroy() {
      link.close();
      sources.destroy();
    },
  };
}

function render(mount) {
  const { model } = mount;
  const trace = readTrace({ steps: model.get("steps"), numbers: model.get("numbers") });
  return mountView(mount, { given, chosen, stateOf: (held) => traceState(trace, held), build });
}

export default { render };
