// The widget HeadSplit: where every number of a tensor (B,T,D) lands when its columns are split into heads.
import { element, fill, onFrame, setAttribute, setText } from "./dom.js";
import { flatIndex, format, unravel } from "./numbers.js";
import { headSplitHome, headSplitOrigin, headSplitPath, rightlyPlaced } from "./heads.js";
import { SIDE_BY_SIDE, axisHeaders, axisWord, optionsOf, placeWords } from "./tensor.js";
import { gridStyle, tensorGrid, textTable } from "./grid.js";
import { checkbox, choice, fold, save, tensorTitle } from "./parts.js";

const ROUTES = ["swap", "direct"];

/** As many tints as the palette has for heads; the headers name the head, so a tint may come again. */
const TINTS = 4;

/** What the model holds, and the arrangement that its route leads to. */
function readModel(model) {
  const names = ["name", "role", "shape", "n_heads", "labels", "values", "decimals", "cell", "header"];
  const choices = ["route", "show", "batch", "selected"];
  const state = Object.fromEntries([...names, ...choices].map((name) => [name, model.get(name)]));
  const { shape, n_heads: H, route } = state;
  const [B, T, D] = shape;
  const origin = headSplitOrigin(route, shape, H);
  const { tensor: words, head_split: texts } = model.get("strings");
  return { ...state, B, T, D, H, dh: D / H, axes: ["b", "t", "d"], words, texts, origin, right: rightlyPlaced(origin, shape, H) };
}

/** The text of a cell: its number, or the position and column that it comes from. */
function cellText(state, flat) {
  const [, t, d] = unravel(flat, state.shape);
  return state.show === "values" ? format(state.values[flat], state.decimals) : `${t},${d}`;
}

/** A cell for the number at `flat`, tinted by the head that it belongs to. */
function cellOf(state, flat, right) {
  const head = headSplitHome(flat, state.shape, state.H)[1];
  return { id: flat, text: cellText(state, flat), share: null, className: tint(head) + (right ? "" : " labs-wrong") };
}

const tint = (head) => `labs-head-${head % TINTS}`;
const range = (size) => Array.from({ length: size }, (_, index) => index);

/** The grid of the chosen batch before the split: positions by columns, with the heads over the columns. */
function sourceSpec(state) {
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
function headSpec(state, batch, head) {
  const { B, H, T, dh, origin, right, texts } = state;
  const place = (t, e) => flatIndex([batch, head, t, e], [B, H, T, dh]);
  return {
    label: `${texts.result}[${batch},${head}]`,
    caption: [placeWords(state, "b", batch, batch), placeWords(state, "h", head, batch)].join(", "),
    corner: ["t", "e"],
    rows: axisHeaders(state, 1, batch),
    columns: range(dh).map((index) => ({ index, label: null })),
    groups: null,
    cells: range(T).map((t) => range(dh).map((e) => cellOf(state, origin[place(t, e)], right[place(t, e)]))),
  };
}

/** "Q[0,2,5] lands at heads[0,1,2,1]: batch 0, head 1, ...", and where it belongs if that is elsewhere. */
function sentenceOf(state, flat) {
  const { B, H, T, dh, origin, shape, name, route, texts } = state;
  const target = unravel(origin.indexOf(flat), [B, H, T, dh]);
  const home = headSplitHome(flat, shape, H);
  const words = (index) => ["b", "h", "t", "dh"].map((axis, a) => placeWords(state, axis, index[a], index[0]));
  const lands = fill(texts.lands, {
    name,
    source: unravel(flat, shape).join(","),
    result: texts.result,
    target: target.join(","),
    places: words(target).join(", "),
  });
  if (target.join() !== home.join()) return `${lands} ${fill(texts.elsewhere, { places: words(home).slice(1, 3).join(", ") })}`;
  return route === "swap" ? lands : `${lands} ${texts.by_luck}`;
}

/** The shapes that the route goes through, with the step between them. */
function pathItems({ route, shape, H, texts }) {
  const steps = route === "swap" ? [texts.reshape, texts.swap_axes] : [texts.reshape];
  return headSplitPath(route, shape, H).flatMap(({ letters, sizes }, stage) => {
    const box = element(
      "li",
      { class: "labs-stage", translate: "no" },
      element("span", {}, `(${letters.join(",")})`),
      element("span", {}, `[${sizes.join(",")}]`),
    );
    return stage === 0 ? [box] : [element("li", { class: "labs-step" }, steps[stage - 1]), box];
  });
}

/** How many numbers are where they belong, and what that means. */
function verdict({ right, route, texts }) {
  const count = fill(texts.count, { right: right.filter(Boolean).length, all: right.length });
  return [element("strong", {}, count), " ", route === "swap" ? texts.swap_verdict : texts.direct_verdict];
}

function render({ model, el }) {
  const first = readModel(model);
  const { B, H, texts } = first;
  let pointed = -1; // under the pointer or focused: known to this view alone

  const part = (tag, className, ...children) => element(tag, { class: className }, ...children);
  const routes = part("div", "labs-controls");
  const path = part("ol", "labs-path");
  const controls = part("div", "labs-controls");
  const message = part("p", "labs-verdict");
  const status = element("p", { class: "labs-status", role: "status" });
  const source = part("div", "labs-source");
  const results = range(B).map(() => part("div", "labs-batch"));
  const result = part("div", B * H > SIDE_BY_SIDE ? "labs-result labs-one-batch" : "labs-result", ...results);
  const root = part(
    "div",
    "labs-root labs-head-split",
    part("p", "labs-title", tensorTitle(first)),
    part("p", "labs-intro", fill(texts.intro, { heads: H, width: first.dh })),
    routes,
    path,
    controls,
    part("div", "labs-split", part("div", "labs-before", source, message, status), result),
  );
  el.append(root);

  const routeChoice = choice(routes, texts.route, [texts.route_swap, texts.route_direct], (index) =>
    save(model, "route", ROUTES[index]),
  );
  const batchOptions = optionsOf(first, 0);
  const batchChoice = choice(controls, axisWord(first, "b"), batchOptions, (index) => save(model, "batch", index));
  const showOrigins = checkbox(controls, texts.show_origins, (checked) =>
    save(model, "show", checked ? "origins" : "values"),
  );
  const text = fold(root, texts.as_text);

  const handlers = {
    point(id) {
      pointed = id;
      draw();
    },
    select: (id) => save(model, "selected", id),
  };
  const complete = (spec, state) => ({
    ...spec,
    selected: state.selected,
    marked: [pointed],
    cell: state.cell,
    header: state.header,
  });
  const specs = (state) => ({
    source: complete(sourceSpec(state), state),
    heads: range(B).map((batch) => range(H).map((head) => complete(headSpec(state, batch, head), state))),
  });

  const opening = specs(first);
  const sourceGrid = tensorGrid(source, opening.source, handlers);
  const headGrids = opening.heads.map((line, batch) => line.map((spec) => tensorGrid(results[batch], spec, handlers)));
  setAttribute(result, "style", `--labs-across:${model.get("across")};${gridStyle(opening.heads[0][0])}`);

  const draw = onFrame(() => {
    const state = readModel(model);
    const now = specs(state);
    sourceGrid.update(now.source);
    headGrids.forEach((line, batch) => line.forEach((grid, head) => grid.update(now.heads[batch][head])));
    results.forEach((line, batch) => line.classList.toggle("labs-chosen", batch === state.batch));
    routeChoice.update(ROUTES.indexOf(state.route));
    batchChoice.update(state.batch);
    showOrigins.update(state.show === "origins");
    path.replaceChildren(...pathItems(state));
    message.classList.toggle("labs-is-wrong", state.right.includes(false));
    message.replaceChildren(...verdict(state));
    text.update([now.source, ...now.heads[state.batch]].map((spec) => `${spec.label}\n${textTable(spec)}`).join("\n\n"));
    const shown = pointed >= 0 ? pointed : state.selected;
    setText(status, shown >= 0 ? sentenceOf(state, shown) : texts.hint);
  });

  /** The batch of a number that was selected, here or elsewhere, comes into sight. */
  const reveal = () => {
    const selected = model.get("selected");
    if (selected >= 0) save(model, "batch", unravel(selected, first.shape)[0]);
  };
  model.on("change:selected", reveal);
  model.on("change", draw);
  draw();

  return () => {
    model.off("change:selected", reveal);
    model.off("change", draw);
    draw.cancel();
    for (const grid of [sourceGrid, ...headGrids.flat()]) grid.destroy();
    root.remove();
  };
}

export default { render };
