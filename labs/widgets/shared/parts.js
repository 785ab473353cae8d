// Parts that several widgets are made of: a title, the browser's own form elements, a fold.
import { element, setAttribute, setText, uniqueId } from "./dom.js";
import { axisWord, optionsOf, sizeName } from "./tensor.js";

/** The name of a tensor in the colour of its role, and, unless it is one number, its shape in numbers and letters. */
export function tensorTitle({ name, shape, axes, role }) {
  const colored = element("span", { class: "labs-name", style: `color:var(--labs-role-${role})` }, name);
  const sizes = shape.length === 0 ? "" : `[${shape.join(",")}] (${axes.map(sizeName).join(",")})`;
  return element("span", { translate: "no" }, colored, " ", element("span", { class: "labs-shape" }, sizes));
}

/**
 * Change a model, { name: value, ... }, for all its views and, where there is a kernel, for Python.
 *
 * For what the reader does, never in answer to an event: in Jupyter, a `set` within a listener swallows the
 * "change" of the `set` that it answers.
 */
export function save(model, values) {
  model.set(values);
  model.save_changes();
}

/**
 * A choice of one among a few: radio buttons up to four options, a drop-down list from five on.
 *
 * `legend` names the choice, `options` is a list of texts, `choose(index)` hears what the reader picks.
 * Returns { update(index, why) }: with a text `why` nothing can be chosen now, and the text says why not.
 */
export function choice(el, legend, options, choose) {
  return options.length > 4 ? dropDown(el, legend, options, choose) : radios(el, legend, options, choose);
}

function radios(el, legend, options, choose) {
  const name = uniqueId();
  const inputs = options.map(() => element("input", { type: "radio", name }));
  const label = (option, index) => element("label", { class: "labs-option" }, inputs[index], option);
  inputs.forEach((input, index) => input.addEventListener("change", () => choose(index)));
  const title = element("legend", {}, legend);
  const set = element("fieldset", { class: "labs-choice" }, title, ...options.map(label));
  el.append(set);
  return {
    update(chosen, why = null) {
      setIdle(set, set, why);
      inputs.forEach((input, index) => {
        input.checked = index === chosen;
      });
    },
  };
}

function dropDown(el, legend, options, choose) {
  const list = element("select", {}, ...options.map((option) => element("option", {}, option)));
  list.addEventListener("change", () => choose(list.selectedIndex));
  const box = element("label", { class: "labs-choice" }, element("span", {}, legend), list);
  el.append(box);
  return {
    update(chosen, why = null) {
      setIdle(box, list, why);
      list.selectedIndex = chosen;
    },
  };
}

/** Switch a form element off, with a text `why`, or on again, with null; `box` is what is seen of it. */
function setIdle(box, control, why) {
  control.disabled = why !== null;
  box.classList.toggle("labs-idle", why !== null);
  setAttribute(box, "title", why);
}

/**
 * A choice of an index on each axis of a tensor { axes, shape, labels, strings } that has more than one; the index
 * on axis a is the model's value `names[a]`.  Returns { update(values, why) }; `why` may hold, by name, why nothing
 * can be chosen there now.
 */
export function indexChoices(el, tensor, names, model) {
  const updates = names.flatMap((name, a) => {
    if (tensor.shape[a] === 1) return [];
    const choose = (index) => save(model, { [name]: index });
    const control = choice(el, axisWord(tensor, tensor.axes[a]), optionsOf(tensor, a), choose);
    return [(values, why) => control.update(values[name], why[name])];
  });
  return {
    update(values, why = {}) {
      for (const update of updates) update(values, why);
    },
  };
}

/** A box to tick.  `toggle(checked)` hears the reader.  Returns { update(checked) }. */
export function checkbox(el, label, toggle) {
  const input = element("input", { type: "checkbox" });
  input.addEventListener("change", () => toggle(input.checked));
  el.append(element("label", { class: "labs-option" }, input, label));
  return {
    update(checked) {
      input.checked = checked;
    },
  };
}

/**
 * A slider over whole numbers.  `slideTo(value)` hears the reader.  Returns { update(value, text) }: the text, by
 * default the number itself, stands beside the slider and is what a screen reader says.
 */
export function slider(el, label, [least, most], slideTo) {
  // data-lm-suppress-shortcuts: in JupyterLab the arrow keys move the slider, not the notebook
  const range = { type: "range", min: least, max: most, "data-lm-suppress-shortcuts": "true" };
  const input = element("input", range);
  const number = element("span", { class: "labs-slider-number", "aria-hidden": "true" });
  input.addEventListener("input", () => slideTo(input.valueAsNumber));
  el.append(element("label", { class: "labs-slider" }, element("span", {}, label), input, number));
  return {
    update(value, text = String(value)) {
      input.value = value;
      setAttribute(input, "aria-valuetext", text);
      setText(number, text);
    },
  };
}

/**
 * A button that does something at once.  `act()` hears the reader.  Returns { update(possible, text) }: a button that
 * can do nothing now says so, and keeps the focus; the text is the label unless it is given.
 */
export function button(el, label, act) {
  const node = element("button", { type: "button", class: "labs-press" }, label);
  node.addEventListener("click", () => {
    if (node.getAttribute("aria-disabled") !== "true") act();
  });
  el.append(node);
  return {
    update(possible, text = label) {
      setText(node, text);
      setAttribute(node, "aria-disabled", possible ? null : true);
    },
  };
}

/** Let so many matrices stand side by side in `el`, on wide and on narrow pages; see grid.css. */
export function setAcross(el, [wide, narrow]) {
  el.style.cssText = `--labs-across:${wide};--labs-across-narrow:${narrow}`;
}

/** Text that opens on demand: the numbers for copying and for a screen reader.  Returns { update(text) }. */
export function fold(el, summary) {
  const text = element("pre", { tabindex: 0, role: "group", "aria-label": summary });
  el.append(element("details", { class: "labs-more" }, element("summary", {}, summary), text));
  return {
    update(next) {
      text.textContent = next;
    },
  };
}
