// The widget HeadSplit: where every number of a tensor (B,T,D) lands when its columns are split into heads.
import { element, fill, part } from "../shared/dom.js";
import { textTable } from "../shared/grid.js";
import { range, unravel } from "../shared/numbers.js";
import { checkbox, choice, fold, save, setAcross, tensorTitle } from "../shared/parts.js";
import { axisWord, optionsOf } from "../shared/tensor.js";
import { mountView } from "../shared/view.js";
import { headSpec, headSplitPath, headSplitState, landing, sourceSpec } from "./state.js";

const ROUTES = ["swap", "direct"];

/** With more heads than this in all batches, only the chosen batch is shown: `SIDE_BY_SIDE` of sizes.py. */
const MOST_GRIDS = 4;

const given = ["name", "role", "shape", "n_heads", "values", "labels", "decimals", "digits", "across", "beside"];
const chosen = ["route", "show", "batch", "selected"];

/** The grids: that of the chosen batch before the split, then those of all batches and heads after it. */
function specsOf(state) {
  const { B, H } = state;
  const heads = range(B).flatMap((batch) => range(H).map((head) => headSpec(state, batch, head)));
  return [sourceSpec(state), ...heads];
}

/** The shapes that the route goes through, with the step between them. */
function pathItems({ route, shape, H, strings: { own } }) {
  const steps = route === "swap" ? [own.reshape, own.swap_axes] : [own.reshape];
  return headSplitPath(route, shape, H).flatMap(({ letters, sizes }, stage) => {
    const box = element(
      "li",
      { class: "labs-stage", translate: "no" },
      element("span", {}, `(${letters.join(",")})`),
      element("span", {}, `[${sizes.join(",")}]`),
    );
    return stage === 0 ? [box] : [part("li", "labs-step", steps[stage - 1]), box];
  });
}

/** How many numbers are where they belong, and what that means. */
function verdict({ right, route, strings: { own } }) {
  const count = fill(own.count, { right: right.filter(Boolean).length, all: right.length });
  return [element("strong", {}, count), " ", route === "swap" ? own.swap_verdict : own.direct_verdict];
}

/** The elements of the widget, those by name that are filled later, around the rest. */
function frame(state, status) {
  const { B, H, dh, beside, strings } = state;
  const parts = {
    routes: part("div", "labs-controls"),
    path: part("ol", "labs-path"),
    controls: part("div", "labs-controls"),
    source: part("div", "labs-source"),
    verdict: part("p", "labs-verdict"),
    batches: range(B).map(() => part("div", "labs-batch labs-matrices")),
  };
  const { routes, path, controls, source, batches } = parts;
  const before = part("div", "labs-before", source, parts.verdict, status);
  parts.result = part("div", B * H > MOST_GRIDS ? "labs-result labs-one-batch" : "labs-result", ...batches);
  parts.root = part(
    "div",
    "labs-root labs-head-split",
    part("p", "labs-title", tensorTitle(state)),
    part("p", "labs-intro", fill(strings.own.intro, { heads: H, width: dh })),
    routes,
    path,
    controls,
    part("div", beside ? "labs-split labs-beside" : "labs-split", before, parts.result),
  );
  return parts;
}

/** The controls: what the reader does changes the model, `update(state)` shows what the model says. */
function addControls(parts, state, model) {
  const { own } = state.strings;
  const chooseRoute = (index) => save(model, { route: ROUTES[index] });
  const route = choice(parts.routes, own.route, [own.route_swap, own.route_direct], chooseRoute);
  const chooseBatch = (index) => save(model, { batch: index });
  const batch = choice(parts.controls, axisWord(state, "b"), optionsOf(state, 0), chooseBatch);
  const showOrigins = (checked) => save(model, { show: checked ? "origins" : "values" });
  const origins = checkbox(parts.controls, own.show_origins, showOrigins);
  return {
    update(now) {
      route.update(ROUTES.indexOf(now.route));
      batch.update(now.batch);
      origins.update(now.show === "origins");
    },
  };
}

function build(view) {
  const { model, state, status, addGrids } = view;
  const { B, H } = state;
  const parts = frame(state, status);
  const controls = addControls(parts, state, model);
  const text = fold(parts.root, state.strings.own.as_text);

  const select = (id) => {
    const [batch] = id >= 0 ? unravel(id, state.shape) : [view.state.batch];
    save(model, { selected: id, batch }); // its batch comes into sight
  };
  const places = range(B).flatMap((batch) => range(H).map(() => parts.batches[batch]));
  addGrids([parts.source, ...places], specsOf, { sentence: landing, select, linked: true });
  setAcross(parts.result, state.across);

  return {
    root: parts.root,
    update(now, [source, ...heads]) {
      parts.batches.forEach((line, batch) => line.classList.toggle("labs-chosen", batch === now.batch));
      parts.path.replaceChildren(...pathItems(now));
      parts.verdict.classList.toggle("labs-is-wrong", now.right.includes(false));
      parts.verdict.replaceChildren(...verdict(now));
      controls.update(now);
      const shown = heads.slice(now.batch * H, (now.batch + 1) * H);
      text.update([source, ...shown].map(textTable).join("\n\n"));
    },
  };
}

export default { render: (mount) => mountView(mount, { given, chosen, stateOf: headSplitState, build }) };
