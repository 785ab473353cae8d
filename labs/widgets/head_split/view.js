// The widget HeadSplit: where every number of a tensor (B,T,D) lands when its columns are split into heads.
import { element, fill, onFrame, setText } from "../shared/dom.js";
import { range, unravel } from "../shared/numbers.js";
import { headSpec, headSplitPath, headSplitState, landing, sourceSpec } from "./state.js";
import { axisWord, optionsOf } from "../shared/tensor.js";
import { tensorGrid, textTable } from "../shared/grid.js";
import { checkbox, choice, fold, onChange, save, setAcross, tensorTitle } from "../shared/parts.js";

const ROUTES = ["swap", "direct"];

/** With more heads than this in all batches, only the chosen batch is shown: `SIDE_BY_SIDE` of sizes.py. */
const MOST_GRIDS = 4;

const GIVEN = ["name", "role", "shape", "n_heads", "values", "labels", "decimals"];
const LOOK = ["strings", "digits"];
const CHOSEN = ["route", "show", "batch", "selected"];

function readModel(model) {
  const names = [...GIVEN, ...LOOK, ...CHOSEN];
  return headSplitState(Object.fromEntries(names.map((name) => [name, model.get(name)])));
}

/** The grids: { source, heads }, where heads[batch][head]. */
function allSpecs(state, pointed) {
  const { B, H, digits, selected } = state;
  const complete = (spec) => ({ ...spec, selected, marked: [pointed], digits });
  return {
    source: complete(sourceSpec(state)),
    heads: range(B).map((batch) => range(H).map((head) => complete(headSpec(state, batch, head)))),
  };
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

/** The elements of the widget, those by name that are filled later, around the rest. */
function frame(state) {
  const { B, H, dh, texts } = state;
  const part = (tag, className, ...children) => element(tag, { class: className }, ...children);
  const parts = {
    routes: part("div", "labs-controls"),
    path: part("ol", "labs-path"),
    controls: part("div", "labs-controls"),
    source: part("div", "labs-source"),
    verdict: part("p", "labs-verdict"),
    status: element("p", { class: "labs-status", role: "status" }),
    batches: range(B).map(() => part("div", "labs-batch labs-matrices")),
  };
  const { routes, path, controls, source, status, batches } = parts;
  const before = part("div", "labs-before", source, parts.verdict, status);
  parts.result = part("div", B * H > MOST_GRIDS ? "labs-result labs-one-batch" : "labs-result", ...batches);
  parts.split = part("div", "labs-split", before, parts.result);
  parts.root = part(
    "div",
    "labs-root labs-head-split",
    part("p", "labs-title", tensorTitle(state)),
    part("p", "labs-intro", fill(texts.intro, { heads: H, width: dh })),
    routes,
    path,
    controls,
    parts.split,
  );
  return parts;
}

/** The controls: what the reader does changes the model, `update(state)` shows what the model says. */
function addControls(parts, state, model) {
  const { texts } = state;
  const chooseRoute = (index) => save(model, { route: ROUTES[index] });
  const route = choice(parts.routes, texts.route, [texts.route_swap, texts.route_direct], chooseRoute);
  const chooseBatch = (index) => save(model, { batch: index });
  const batch = choice(parts.controls, axisWord(state, "b"), optionsOf(state, 0), chooseBatch);
  const showOrigins = (checked) => save(model, { show: checked ? "origins" : "values" });
  const origins = checkbox(parts.controls, texts.show_origins, showOrigins);
  return {
    update(now) {
      route.update(ROUTES.indexOf(now.route));
      batch.update(now.batch);
      origins.update(now.show === "origins");
    },
  };
}

function render({ model, el }) {
  let state = readModel(model);
  let pointed = -1; // under the pointer or focused: known to this view alone

  const parts = frame(state);
  el.append(parts.root);
  const controls = addControls(parts, state, model);
  const text = fold(parts.root, state.texts.as_text);

  const handlers = {
    point(id) {
      pointed = id;
      for (const grid of grids) grid.mark([id]);
      drawStatus();
    },
    select(id) {
      const [batch] = id >= 0 ? unravel(id, state.shape) : [state.batch];
      save(model, { selected: id, batch }); // its batch comes into sight
    },
  };
  const opening = allSpecs(state, pointed);
  const sourceGrid = tensorGrid(parts.source, opening.source, handlers);
  const headGrids = opening.heads.map((specs, batch) =>
    specs.map((spec) => tensorGrid(parts.batches[batch], spec, handlers)),
  );
  const grids = [sourceGrid, ...headGrids.flat()];
  setAcross(parts.result, model.get("across"));
  parts.split.classList.toggle("labs-beside", model.get("beside"));

  function drawStatus() {
    const shown = pointed >= 0 ? pointed : state.selected;
    setText(parts.status, shown >= 0 ? landing(state, shown) : state.texts.hint);
  }

  const draw = onFrame(() => {
    state = readModel(model);
    const { source, heads } = allSpecs(state, pointed);
    sourceGrid.update(source);
    headGrids.forEach((line, batch) => line.forEach((grid, head) => grid.update(heads[batch][head])));
    parts.batches.forEach((line, batch) => line.classList.toggle("labs-chosen", batch === state.batch));
    parts.path.replaceChildren(...pathItems(state));
    parts.verdict.classList.toggle("labs-is-wrong", state.right.includes(false));
    parts.verdict.replaceChildren(...verdict(state));
    controls.update(state);
    text.update([source, ...heads[state.batch]].map(textTable).join("\n\n"));
    drawStatus();
  });
  const ignore = onChange(model, CHOSEN, draw);
  draw();

  return () => {
    ignore();
    draw.cancel();
    for (const grid of grids) grid.destroy();
    parts.root.remove();
  };
}

export default { render };
