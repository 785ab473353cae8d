// The picture of a matrix that every widget uses: a grid of cells with headers, one of them in reach of Tab.
import { element, onFrame, setAttribute, setText } from "./dom.js";

/** @typedef {[number, number]} Place  Row and column of a cell. */

/**
 * Draw a matrix in `el` and keep it up to date.
 *
 * `spec` says everything that is shown:
 *   label     what a screen reader calls the grid
 *   caption   a line above it, or null
 *   corner    the names of the row axis (null for a single row) and of the column axis (null if it has none)
 *   rows      one { index, label, role } a row: its number and its letter, or null for either; a role of the
 *             palette, which may be left out, colours the letter
 *   columns   the same for the columns
 *   groups    null, or headers over several columns: { text, span, className }
 *   cells     cells[row][column]: null where there is none, else
 *             { id, text, share, className, disabled, name }: `id` is the caller's name for it, a number;
 *             `share` in [-1, 1], or null, colours it on the diverging scale; a disabled cell cannot be
 *             selected; `name` is what a screen reader says instead of the text; className, disabled and name
 *             may be left out
 *   selected  the id of the selected cell, or -1
 *   marked    the ids of the cells outlined as its counterparts
 *   digits    the columns have room for numbers of so many digits; what is longer makes its column wider
 *
 * `handlers.point(id)` hears which cell the pointer has moved to or the focus is on (-1: none), at most once a frame;
 * `handlers.select(id)` hears which cell the reader selects (-1: selection cleared).  With `handlers.follow` true
 * a cell is always selected, that which the arrow keys come to, and Tab reaches the selected one.
 *
 * Keys: arrows, Home and End in the row, with Ctrl in the grid; Enter or Space selects, Escape clears.
 *
 * Returns { update(spec), mark(ids), focus(), reveal(id), destroy() }; `mark` changes nothing but `marked`, `focus`
 * goes to the cell that Tab reaches, `reveal` scrolls a grid that is wider than the page sideways to a cell.
 */
export function tensorGrid(el, spec, handlers) {
  const listeners = new AbortController();
  const table = element("table", { class: "labs-grid", role: "grid" });
  const box = element("div", { class: "labs-grid-box" }, table);
  const caption = element("p", { class: "labs-caption" }); // not of the table: it would make that as wide as itself
  const root = element("div", { class: "labs-captioned" }, caption, box);
  el.append(root);

  let nodes = []; // nodes[row][column], the <td> of each cell
  let places = new Map(); // <td> -> [row, column]
  /** @type {Place} */
  let active = [0, 0]; // the one cell that Tab reaches
  let pointed = -1;

  const announce = onFrame(() => handlers.point(pointed));
  const point = (id) => {
    pointed = id;
    announce();
  };

  function cellAt(row, column) {
    return spec.cells[row]?.[column] ?? null;
  }

  /**
   * The place that Tab reaches, if its cell can be selected, else the first whose cell can, or null.
   * @returns {Place | null}
   */
  function enabledPlace() {
    const enabled = ([row, column]) => cellAt(row, column) !== null && !cellAt(row, column).disabled;
    return enabled(active) ? active : ([...places.values()].find(enabled) ?? null);
  }

  /**
   * Where the selected cell is, if it is the one that Tab reaches.
   * @returns {Place | null}
   */
  function selectedPlace() {
    if (!handlers.follow) return null;
    const row = spec.cells.findIndex((line) => line.some((cell) => cell && cell.id === spec.selected));
    return row < 0 ? null : [row, spec.cells[row].findIndex((cell) => cell && cell.id === spec.selected)];
  }

  function build() {
    const { rows, columns, groups, corner } = spec;
    const head = [element("tr", {}, cornerCell(corner), ...columns.map((each) => header("col", each)))];
    if (groups) head.unshift(element("tr", {}, element("td"), ...groups.map(groupHeader)));
    nodes = rows.map(() => columns.map(() => element("td", { class: "labs-cell", role: "gridcell" })));
    places = new Map(nodes.flatMap((line, row) => line.map((node, column) => [node, [row, column]])));
    const body = rows.map((row, index) => element("tr", {}, header("row", row), ...nodes[index]));
    table.replaceChildren(
      element("thead", {}, ...head),
      element("tbody", {}, ...body),
    );
    setAttribute(box, "style", boxStyle(spec));
    active = selectedPlace() ?? [0, 0];
    active = enabledPlace() ?? active;
  }

  function draw() {
    caption.hidden = spec.caption === null;
    setText(caption, spec.caption ?? "");
    setAttribute(table, "aria-label", spec.label);
    setAttribute(table, "style", `--labs-digits:${spec.digits}`);
    nodes.forEach((line, row) => line.forEach((node, column) => drawCell(node, cellAt(row, column))));
    moveTo(active);
  }

  function drawCell(node, cell) {
    const share = cell?.share ?? 0;
    const classes = ["labs-cell", cell?.className];
    if (cell === null) classes.push("labs-absent");
    if (share !== 0) classes.push(share < 0 ? "labs-negative" : "labs-positive");
    if (cell && spec.marked.includes(cell.id)) classes.push("labs-marked");
    setAttribute(node, "class", classes.filter(Boolean).join(" "));
    setAttribute(node, "style", share === 0 ? null : `--labs-m:${Math.abs(share).toFixed(3)}`);
    setAttribute(node, "aria-selected", cell ? cell.id === spec.selected : null);
    setAttribute(node, "aria-disabled", cell?.disabled ? true : null);
    setAttribute(node, "aria-label", cell?.name ?? null);
    setText(node, cell?.text ?? "");
  }

  /** Make this the one cell that Tab reaches. */
  function moveTo([row, column]) {
    for (const [node, [r, c]] of places) {
      const reachable = r === row && c === column;
      setAttribute(node, "tabindex", cellAt(r, c) === null ? null : reachable ? 0 : -1);
    }
    active = [row, column];
  }

  /**
   * The first cell from a place in a direction that is there, or null.
   * @returns {Place | null}
   */
  function nextCell([row, column], down, right) {
    const [r, c] = [row + down, column + right];
    if (r < 0 || r >= nodes.length || c < 0 || c >= nodes[0].length) return null;
    return cellAt(r, c) === null ? nextCell([r, c], down, right) : [r, c];
  }

  /**
   * The last cell that one comes to in a direction.
   * @returns {Place}
   */
  function lastCell(place, down, right) {
    const next = nextCell(place, down, right);
    return next === null ? place : lastCell(next, down, right);
  }

  function goal(key, ctrl) {
    const [row, column] = active;
    if (key === "ArrowUp") return nextCell(active, -1, 0);
    if (key === "ArrowDown") return nextCell(active, 1, 0);
    if (key === "ArrowLeft") return nextCell(active, 0, -1);
    if (key === "ArrowRight") return nextCell(active, 0, 1);
    if (key === "Home") return lastCell([ctrl ? 0 : row, column], 0, -1);
    if (key === "End") return lastCell([ctrl ? nodes.length - 1 : row, column], 0, 1);
    return null;
  }

  function select(cell) {
    if (!cell || cell.disabled) return;
    // with `follow` also the selected one: keys may come back to it before anything is drawn anew
    handlers.select(cell.id === spec.selected && !handlers.follow ? -1 : cell.id);
  }

  function onKey(event) {
    const place = places.get(event.target);
    if (place === undefined || event.altKey || event.metaKey) return;
    const moves = /^(Arrow(Up|Down|Left|Right)|Home|End)$/.test(event.key);
    if (moves) {
      moveTo(place);
      const target = goal(event.key, event.ctrlKey);
      if (target) nodes[target[0]][target[1]].focus();
      if (target && handlers.follow) select(cellAt(...target));
    } else if (event.key === "Enter" || event.key === " ") select(cellAt(...place));
    else if (event.key === "Escape" && !handlers.follow) handlers.select(-1);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  const cellOf = (event) => {
    const place = places.get(event.target.closest("td"));
    return place ? cellAt(...place) : null;
  };
  const listen = (type, handler) => table.addEventListener(type, handler, { signal: listeners.signal });
  // not pointerover, which also comes when a new picture appears under a resting pointer
  listen("pointermove", (event) => point(cellOf(event)?.id ?? -1));
  listen("pointerleave", () => point(-1));
  listen("focusin", (event) => {
    if (!places.has(event.target)) return;
    moveTo(places.get(event.target));
    point(cellOf(event).id);
  });
  listen("focusout", () => point(-1));
  listen("click", (event) => select(cellOf(event)));
  listen("keydown", onKey);

  build();
  draw();
  return {
    update(next) {
      const same = skeleton(next) === skeleton(spec);
      if (next.label !== spec.label) announce.cancel(); // what was pointed at is no longer there
      spec = next;
      if (!same) build();
      if (!table.contains(document.activeElement)) active = enabledPlace() ?? active;
      active = selectedPlace() ?? active;
      draw();
    },
    mark(marked) {
      spec = { ...spec, marked };
      draw();
    },
    focus() {
      nodes[active[0]][active[1]].focus();
    },
    reveal(id) {
      const node = [...places.keys()].find((each) => cellAt(...places.get(each))?.id === id);
      if (node === undefined) return;
      const [cell, frame] = [node.getBoundingClientRect(), box.getBoundingClientRect()];
      const header = node.parentNode.firstElementChild.getBoundingClientRect();
      const left = frame.left + header.width; // headers stay in sight
      if (cell.right > frame.right) box.scrollLeft += cell.right - frame.right;
      if (cell.left < left) box.scrollLeft -= left - cell.left;
    },
    destroy() {
      listeners.abort();
      announce.cancel();
      root.remove();
    },
  };
}

/** Everything that the frame around the cells depends on, as one text: while it stays, so do the elements. */
function skeleton({ corner, rows, columns, groups }) {
  return JSON.stringify([corner, rows, columns, groups]);
}

/** The custom properties from which grid.css takes the height of a grid: rows, and lines above them. */
function boxStyle({ groups, rows }) {
  return `--labs-lines:${groups === null ? 1 : 2};--labs-rows:${rows.length}`;
}

/** The names of the axes, one above the other, so that the column is hardly wider than its indices. */
function cornerCell([row, column]) {
  const names = [];
  if (column !== null) names.push(element("span", { class: "labs-across" }, `${column}→`));
  if (row !== null) names.push(element("span", { class: "labs-down" }, `${row}↓`));
  return element("td", { class: "labs-corner" }, ...names);
}

function header(scope, { index, label, role = null }) {
  if (index === null && label === null) return element("td", { class: `labs-${scope}` }); // nothing to name
  const number = index === null ? "" : String(index);
  if (label === null) return element("th", { scope, class: `labs-${scope} labs-index` }, number);
  const children = index === null ? [] : [element("span", { class: "labs-index" }, number), " "];
  const style = role === null ? null : `color:var(--labs-role-${role})`;
  children.push(element("span", { class: "labs-letter", style }, label));
  return element("th", { scope, class: `labs-${scope}` }, ...children);
}

function groupHeader({ text, span, className }) {
  return element("th", { scope: "colgroup", colspan: span, class: `labs-group ${className}` }, text);
}

/**
 * Draw numbers to read, none of which can be selected, in `el`.  Takes the `spec` of a grid, of which it uses
 * label, corner, rows, columns and, of each cell, text and className.  Returns { update(spec) }.
 */
export function numberTable(el) {
  const table = element("table", { class: "labs-grid labs-numbers" });
  el.append(table);
  return {
    update(spec) {
      const { label, rows, columns, cells, corner } = spec;
      setAttribute(table, "aria-label", label);
      const number = (cell) => element("td", { class: cell?.className ?? null }, cell?.text ?? "");
      table.replaceChildren(
        element("thead", {}, element("tr", {}, cornerCell(corner), ...columns.map((each) => header("col", each)))),
        element("tbody", {}, ...rows.map((row, r) => element("tr", {}, header("row", row), ...cells[r].map(number)))),
      );
    },
  };
}

/** The same matrix as plain text: its name, then aligned columns.  Takes the `spec` of a grid. */
export function textTable({ label: name, corner, rows, columns, cells }) {
  const [down, across] = corner;
  const title = (axis, { index, label }) =>
    [index === null ? [] : `${axis}=${index}`, label ?? []].flat().join(" ");
  const head = ["", ...columns.map((column) => title(across, column))];
  const body = rows.map((row, r) => [title(down, row), ...cells[r].map((cell) => cell?.text ?? "")]);
  const lines = [head, ...body];
  const widths = head.map((_, column) => Math.max(...lines.map((line) => line[column].length)));
  const pad = (text, column) => (column === 0 ? text.padEnd(widths[0]) : text.padStart(widths[column]));
  return [name, ...lines.map((line) => line.map(pad).join("  ").trimEnd())].join("\n");
}
