// The widget TensorGrid: any small array as grids of cells.
import { element, onFrame, setText } from "../shared/dom.js";
import { axisWord, matrixSpec, optionsOf, sentence, shownMatrices } from "../shared/tensor.js";
import { tensorGrid, textTable } from "../shared/grid.js";
import { choice, fold, onChange, save, setAcross, tensorTitle } from "../shared/parts.js";

/** The record that `shared/tensor.js` works on. */
function tensorOf(model) {
  const names = ["name", "role", "shape", "axes", "values", "decimals", "limit", "labels"];
  const tensor = Object.fromEntries(names.map((name) => [name, model.get(name)]));
  return { ...tensor, words: model.get("strings").tensor };
}

function render({ model, el }) {
  const tensor = tensorOf(model);
  const words = model.get("strings").tensor_grid;
  const pickedAxes = tensor.axes.slice(0, model.get("picked").length);
  let pointed = -1; // under the pointer or focused: known to this view alone

  const pickers = element("div", { class: "labs-controls" });
  const matrices = element("div", { class: "labs-matrices" });
  const status = element("p", { class: "labs-status", role: "status" });
  const title = element("p", { class: "labs-title" }, tensorTitle(tensor));
  const root = element("div", { class: "labs-root" }, title, pickers, matrices, status);
  el.append(root);

  const handlers = {
    point(id) {
      pointed = id;
      drawStatus();
    },
    select: (id) => save(model, { selected: id }),
  };

  const choices = pickedAxes.map((axis, a) => {
    const pick = (index) => save(model, { picked: model.get("picked").with(a, index) });
    return choice(pickers, axisWord(tensor, axis), optionsOf(tensor, a), pick);
  });
  const text = fold(root, words.as_text);

  const specs = () =>
    shownMatrices(tensor.shape, model.get("picked")).map((leading) => ({
      ...matrixSpec(tensor, leading),
      selected: model.get("selected"),
      marked: [],
      digits: model.get("digits"),
    }));
  setAcross(matrices, model.get("across"));
  const grids = specs().map((spec) => tensorGrid(matrices, spec, handlers));

  function drawStatus() {
    const shown = pointed >= 0 ? pointed : model.get("selected");
    setText(status, shown >= 0 ? sentence(tensor, shown) : words.hint);
  }

  const draw = onFrame(() => {
    const now = specs();
    grids.forEach((grid, index) => grid.update(now[index]));
    choices.forEach((picker, a) => picker.update(model.get("picked")[a]));
    text.update(now.map(textTable).join("\n\n"));
    drawStatus();
  });
  const ignore = onChange(model, ["selected", "picked"], draw);
  draw();

  return () => {
    ignore();
    draw.cancel();
    grids.forEach((grid) => grid.destroy());
    root.remove();
  };
}

export default { render };
