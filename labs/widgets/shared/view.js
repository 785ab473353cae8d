// The frame that mounts the view of any widget: it reads the model, draws, listens and cleans up.
import { element, setText, soon } from "./dom.js";
import { tensorGrid } from "./grid.js";

/**
 * Mount a view in `el`; returns what takes it down.
 *
 *   given, chosen   names of the model's values: what stays as it is, and what the reader changes
 *   stateOf(held)   what is shown, from these values; `strings.own` are the texts of the widget
 *   build(view)     makes the elements; returns { root, update(state, specs), destroy } and may leave out the last:
 *                   `update` draws a state, and is given the specs of all grids, which are drawn already
 *
 * A `view` is { model, state, status, draw, say, addGrids }:
 *   state    what is drawn: what the model says, because every change is drawn before the next event is heard
 *   status   the line for a sentence about what is pointed at, selected, or else what to do
 *   draw     asks for a drawing; a change of the model does it by itself
 *   say      say(sentence): what to say instead, as a function of the state; null for nothing
 */
export function mountView({ model, el }, { given, chosen, stateOf, build }) {
  const names = [...given, "strings", ...chosen];
  const now = () => stateOf(Object.fromEntries(names.map((name) => [name, model.get(name)])));
  const status = element("p", { class: "labs-status", role: "status" });
  const view = { model, state: now(), status, draw: soon(draw), say, addGrids };
  const sets = []; // of grids: { grids, specs, sentence }
  /** @type {((state: any) => string) | null} */
  let said = null; // like what is pointed at, known to this view alone

  function say(sentence) {
    said = sentence;
    drawStatus();
  }

  function drawStatus() {
    const { selected, strings } = view.state;
    if (said) setText(status, said(view.state));
    else setText(status, selected >= 0 ? sets[0].sentence(view.state, selected) : strings.own.hint);
  }

  /**
   * Add grids to a place, or each to its own of several places, and keep them up to date; returns them.
   *
   *   specsOf(state)            their specs for `tensorGrid`; `selected`, `marked` and `digits` may be left out
   *   sentence(state, id, n)    a cell of grid n in words
   *   select(id), follow        as in `tensorGrid`
   *   linked                    whether what is pointed at in one grid is marked in all
   */
  function addGrids(places, specsOf, { sentence, select = () => {}, follow, linked }) {
    let marked = [];
    const specs = () => {
      const { selected = -1, digits } = view.state;
      return specsOf(view.state).map((spec) => ({ selected, marked, digits, ...spec }));
    };
    const point = (n) => (id) => {
      if (linked) {
        marked = [id];
        for (const grid of grids) grid.mark(marked);
      }
      say(id < 0 ? null : (state) => sentence(state, id, n));
    };
    const place = (n) => (Array.isArray(places) ? places[n] : places);
    const grids = specs().map((spec, n) => tensorGrid(place(n), spec, { point: point(n), select, follow }));
    sets.push({ grids, specs, sentence });
    return grids;
  }

  function draw() {
    view.state = now();
    const drawn = sets.flatMap(({ grids, specs }) => {
      const next = specs();
      grids.forEach((grid, n) => grid.update(next[n]));
      return next;
    });
    update(view.state, drawn);
    drawStatus();
  }

  const { root, update, destroy } = build(view);
  el.append(root);
  for (const name of chosen) model.on(`change:${name}`, view.draw);
  draw();

  return () => {
    for (const name of chosen) model.off(`change:${name}`, view.draw);
    view.draw.cancel();
    destroy?.();
    for (const { grids } of sets) for (const grid of grids) grid.destroy();
    root.remove();
  };
}
