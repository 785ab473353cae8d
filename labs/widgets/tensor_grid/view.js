// The widget TensorGrid: any small array as grids of cells.
import { part } from "../shared/dom.js";
import { textTable } from "../shared/grid.js";
import { choice, fold, save, setAcross, tensorTitle } from "../shared/parts.js";
import { axisWord, matrixSpec, optionsOf, sentence, shownMatrices } from "../shared/tensor.js";
import { mountView } from "../shared/view.js";

const given = ["name", "role", "shape", "axes", "values", "decimals", "limit", "labels", "digits", "across"];
const chosen = ["picked", "selected"];

/** The record that `shared/tensor.js` works on. */
function stateOf(held) {
  return { ...held, strings: { ...held.strings, own: held.strings.tensor_grid } };
}

function build({ model, state, status, addGrids }) {
  const pickers = part("div", "labs-controls");
  const matrices = part("div", "labs-matrices");
  const title = part("p", "labs-title", tensorTitle(state));
  const root = part("div", "labs-root", title, pickers, matrices, status);

  const choices = state.picked.map((_, a) => {
    const pick = (index) => save(model, { picked: model.get("picked").with(a, index) });
    return choice(pickers, axisWord(state, state.axes[a]), optionsOf(state, a), pick);
  });
  const text = fold(root, state.strings.own.as_text);

  const specsOf = (now) => shownMatrices(now.shape, now.picked).map((leading) => matrixSpec(now, leading));
  setAcross(matrices, state.across);
  addGrids(matrices, specsOf, { sentence, select: (id) => save(model, { selected: id }) });

  return {
    root,
    update({ picked }, specs) {
      choices.forEach((picker, a) => picker.update(picked[a]));
      text.update(specs.map(textTable).join("\n\n"));
    },
  };
}

export default { render: (mount) => mountView(mount, { given, chosen, stateOf, build }) };
