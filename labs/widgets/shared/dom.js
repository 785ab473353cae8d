// Small helpers to build a page.  Text only ever becomes text: there is no innerHTML.

/** A new element; `attributes` set to null are left out, children are nodes or strings. */
export function element(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** The same with nothing but a class. */
export function part(tag, className, ...children) {
  return element(tag, { class: className }, ...children);
}

/** A new element in a drawing: `svg` and everything within it. */
export function svgElement(tag, attributes = {}, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) setAttribute(node, name, value);
  node.append(...children);
  return node;
}

/** Set an attribute, or remove it where the value is null; touches the page only when something changes. */
export function setAttribute(node, name, value) {
  if (value === null) node.removeAttribute(name);
  else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
}

/** Set the text of a node, touching the page only when it changes. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** An id that no other element of the page has; drawn, because a view is built before it is in the page. */
export function uniqueId() {
  return `labs-${Math.random().toString(36).slice(2)}`;
}

/** Put values into the {places} of a template; a place without a value is an error. */
export function fill(template, values) {
  return template.replace(/\{(\w+)\}/g, (place, name) => {
    if (!(name in values)) throw new Error(`the text "${template}" needs a value for ${place}`);
    return values[name];
  });
}

/** Call `draw` at most once per animation frame, however often the returned function is called. */
export function onFrame(draw) {
  let frame = 0;
  const request = () => {
    frame ||= requestAnimationFrame(() => {
      frame = 0;
      draw();
    });
  };
  request.cancel = () => {
    cancelAnimationFrame(frame);
    frame = 0;
  };
  return request;
}

/** Call `draw` once as soon as the code that runs now has ended, however often the returned function is called. */
export function soon(draw) {
  let asked = false;
  const request = () => {
    if (!asked) queueMicrotask(answer);
    asked = true;
  };
  const answer = () => {
    if (asked) draw();
    asked = false;
  };
  request.cancel = () => {
    asked = false;
  };
  return request;
}
