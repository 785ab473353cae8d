// Runs the widgets of a built page without a kernel.  A classic script: works from http and from file://.
//
// What a page must hold, in the form that the Jupyter tools write:
//   <script type="application/vnd.jupyter.widget-state+json">  the models: { state: { id: { state, buffers } } }
//   <script type="application/vnd.jupyter.widget-view+json">   at each place: { model_id }
//   <script type="application/vnd.labs.strings+json">  what this script says to a reader, in the page's language
//   <div class="labs-view">   before that, if the page likes: where the widget goes, holding what stands there
//                             until it does
// A model brings its code either in its state (`_esm`, `_css`) or, to be stored once per site, as `_module`, the
// key of a module that the page names (and whose style sheet it links):
//   <script type="application/vnd.labs.widget-module" data-key="KEY" src="DIRECTORY/KEY.js">
// The module is imported from there, so that no policy need allow more than scripts of the page's own origin.
// A page that has no origin, from file:// or in a sandboxed frame, may not import files: there the classic script
// DIRECTORY/KEY.text.js sets self.labsModules[KEY] to the module's text, which is imported as a blob.
//
// When all is drawn, <html> gets data-labs-widgets="ready".  `labsHost.close()` takes every widget down.
(() => {
  if (self.labsHost) return; // the page may name this script twice

  const STATE = "application/vnd.jupyter.widget-state+json";
  const VIEW = "application/vnd.jupyter.widget-view+json";
  const MODULE = "application/vnd.labs.widget-module";
  const STRINGS = "application/vnd.labs.strings+json";

  // ---- words ----------------------------------------------------------------------------------------------

  /** A text of the page's table, its {places} filled; without a table its name. */
  function say(name, values = {}) {
    const table = document.querySelector(`script[type="${STRINGS}"]`);
    const template = (table && JSON.parse(table.textContent)[name]) ?? name;
    return template.replace(/\{(\w+)\}/g, (_, place) => values[place]);
  }

  // ---- models ---------------------------------------------------------------------------------------------

  /** Whether two values of a state are equal, as Backbone compares them: by content. */
  function same(a, b) {
    if (Object.is(a, b)) return true;
    if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
    if (Object.getPrototypeOf(a) !== Object.getPrototypeOf(b) || ArrayBuffer.isView(a)) return false;
    const keys = Object.keys(a);
    return keys.length === Object.keys(b).length && keys.every((key) => key in b && same(a[key], b[key]));
  }

  /** A model with Backbone's semantics: all its views share it, and hear of every change at once. */
  class Model {
    constructor(id, state) {
      this.id = id;
      this.state = state;
      this.listeners = []; // { event, callback, owner }
      this.setting = false;
      this.pending = false;
    }

    set(key, value) {
      const values = typeof key === "object" ? key : { [key]: value };
      const changed = Object.keys(values).filter((name) => !same(this.state[name], values[name]));
      for (const name of changed) this.state[name] = values[name];
      if (changed.length > 0) this.pending = true;
      const outermost = !this.setting;
      this.setting = true;
      for (const name of changed) this.trigger(`change:${name}`, this.state[name]);
      if (!outermost) return;
      while (this.pending) {
        this.pending = false;
        this.trigger("change");
      }
      this.setting = false;
    }

    trigger(event, ...values) {
      for (const { event: heard, callback, owner } of [...this.listeners]) {
        if (heard !== event && heard !== "all") continue;
        const model = owner.face;
        try {
          callback(...(heard === "all" ? [event] : []), model, ...values);
        } catch (error) {
          self.reportError(error); // one listener's error does not keep the others from hearing
        }
      }
    }

    on(events, callback, owner) {
      for (const event of events.trim().split(/\s+/)) this.listeners.push({ event, callback, owner });
    }

    /** Remove the owner's listeners: all, those of some events, those of a callback, or both together. */
    off(events, callback, owner) {
      const names = events?.trim().split(/\s+/);
      this.listeners = this.listeners.filter(
        (listener) =>
          listener.owner !== owner ||
          (names && !names.includes(listener.event)) ||
          (callback && listener.callback !== callback),
      );
    }
  }

  /** What one `initialize` or `render` sees of a model, as in anywidget: `off` reaches only its own. */
  function faceOf(model, signal) {
    const owner = {};
    owner.face = {
      get: (name) => model.state[name],
      set: (key, value) => model.set(key, value),
      save_changes() {}, // nobody to save to: the other views already know
      send() {}, // nobody to send to
      on: (events, callback) => model.on(events, callback, owner),
      off: (events, callback) => model.off(events, callback, owner),
      widget_manager: { get_model: async (id) => faceOf(modelOf(id), signal) },
    };
    signal.addEventListener("abort", () => model.off(null, null, owner));
    return owner.face;
  }

  // ---- the page's state -----------------------------------------------------------------------------------

  const stored = new Map(); // id -> { model_name, state, buffers }
  const models = new Map(); // id -> Model

  function readStates() {
    for (const script of document.querySelectorAll(`script[type="${STATE}"]`)) {
      try {
        for (const [id, entry] of Object.entries(JSON.parse(script.textContent).state)) {
          for (const buffer of entry.buffers ?? []) restore(entry.state, buffer);
          stored.set(id, entry);
        }
      } catch (error) {
        console.error("the state of this page's widgets cannot be read:", error);
      }
    }
  }

  /** Put a binary value back into its place in the state, as a DataView, which is what JupyterLab gives. */
  function restore(state, { path, data, encoding }) {
    if (encoding !== "base64") throw new Error(`a buffer must be base64, got ${encoding}`);
    const bytes = Uint8Array.from(atob(data), (character) => character.charCodeAt(0));
    const parent = path.slice(0, -1).reduce((value, key) => value[key], state);
    parent[path.at(-1)] = new DataView(bytes.buffer);
  }

  /** The id in a reference to a model. */
  const idOf = (reference) => reference.replace(/^IPY_MODEL_/, "");

  function modelOf(reference) {
    const id = idOf(reference);
    if (!stored.has(id)) throw new Error(`there is no widget ${id} in this page`);
    if (!models.has(id)) models.set(id, new Model(id, stored.get(id).state));
    return models.get(id);
  }

  // ---- modules --------------------------------------------------------------------------------------------

  const modules = new Map(); // key of a module, or its text -> promise of its widget
  const sheets = new Set(); // style sheet texts in the page

  /** The widget of a model's code: { initialize, render }.  A module runs once, a style sheet is added once. */
  function load({ _module: key, _esm: text, _css: sheet }) {
    if (sheet && !sheets.has(sheet)) {
      sheets.add(sheet);
      const style = document.createElement("style");
      style.textContent = sheet;
      document.head.append(style);
    }
    const name = key ?? text;
    if (!modules.has(name)) modules.set(name, widgetOf(key ? importStored(key) : importText(text)));
    return modules.get(name);
  }

  async function widgetOf(module) {
    const { default: widget } = await module;
    if (!widget) throw new Error("its module has no default export");
    return typeof widget === "function" ? await widget() : widget;
  }

  async function importStored(key) {
    /** @type {HTMLScriptElement | null} */
    const script = document.querySelector(`script[type="${MODULE}"][data-key="${key}"]`);
    if (!script) throw new Error(`its module ${key} is missing`);
    const address = script.src;
    const mayImport = location.protocol !== "file:" && self.origin !== "null";
    return mayImport ? import(address) : importText(await textOf(key, address));
  }

  async function importText(text) {
    const address = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
    try {
      return await import(address);
    } finally {
      URL.revokeObjectURL(address);
    }
  }

  /** The text of a stored module, by the script beside it. */
  async function textOf(key, address) {
    const script = document.createElement("script");
    script.src = address.replace(/\.js($|\?)/, ".text.js$1");
    await new Promise((done) => {
      script.onload = script.onerror = done;
      document.head.append(script);
    });
    const text = self.labsModules?.[key];
    if (text === undefined) throw new Error(`its module ${key} is missing`);
    return text;
  }

  // ---- mounting -------------------------------------------------------------------------------------------

  const closing = new AbortController();
  const cleanups = [];
  const initialized = new Map(); // Model -> promise

  /** Call one of a widget's functions and keep the cleanup that it returns. */
  async function run(call, model, more) {
    const face = faceOf(model, closing.signal);
    const cleanup = await call?.({ model: face, signal: closing.signal, experimental: { invoke }, ...more });
    if (typeof cleanup === "function") cleanups.push(cleanup);
  }

  /** Commands of anywidget run in Python. */
  const invoke = async () => {
    throw new Error(say("needs_python", { kind: "invoke" }));
  };

  async function mount(reference, el) {
    const entry = stored.get(idOf(reference));
    if (!entry) note(el, say("no_state"));
    else if (entry.state._module || entry.state._esm) await mountWidget(modelOf(reference), el);
    else if (Array.isArray(entry.state.children)) await mountBox(entry, el);
    else note(el, say("needs_python", { kind: entry.model_name.replace(/Model$/, "") }));
  }

  async function mountWidget(model, el) {
    const widget = await load(model.state);
    if (!initialized.has(model)) initialized.set(model, run(widget.initialize, model, {}));
    await initialized.get(model);
    el.replaceChildren(); // what stood there until now
    await run(widget.render, model, { el });
  }

  /** Put the widget that a view script names into its place, which is made if the page has none. */
  async function mountView(script) {
    let el = script.previousElementSibling;
    if (!el?.matches(".labs-view")) {
      el = document.createElement("div");
      script.before(el);
    }
    await orExplain(el, () => mount(JSON.parse(script.textContent).model_id, el));
  }

  /** HBox, VBox and the other boxes of ipywidgets: their children, side by side or one below the other. */
  async function mountBox({ model_name: kind, state }, el) {
    el.style.cssText = `display:flex;gap:1rem;flex-flow:${kind === "HBoxModel" ? "row wrap" : "column"}`;
    el.replaceChildren();
    const places = state.children.map(() => el.appendChild(document.createElement("div")));
    const mountChild = (child, index) => orExplain(places[index], () => mount(child, places[index]));
    await Promise.all(state.children.map(mountChild));
  }

  /** Mount one widget; if it fails, say so in its place: the others go on. */
  async function orExplain(el, mountOne) {
    try {
      await mountOne();
    } catch (error) {
      console.error("a widget could not start:", error);
      note(el, say("failed", { reason: error.message }));
    }
  }

  function note(el, text) {
    const paragraph = document.createElement("p");
    paragraph.className = "labs-host-note";
    paragraph.setAttribute("role", "note");
    paragraph.textContent = text;
    el.replaceChildren(paragraph);
  }

  // ---- what is wider than the page ------------------------------------------------------------------------

  /** A formula or table that scrolls must be reachable by the keyboard, one that does not must not be in its way. */
  function watchWide() {
    const observer = new ResizeObserver((entries) => {
      // read all, then write, so that the page is laid out once
      const scrolls = entries.map(({ target }) => target.scrollWidth > target.clientWidth);
      entries.forEach(({ target }, index) => {
        if (scrolls[index]) target.setAttribute("tabindex", "0");
        else target.removeAttribute("tabindex");
      });
    });
    for (const wide of document.querySelectorAll(".labs-math-scroll, .labs-table-scroll")) observer.observe(wide);
    closing.signal.addEventListener("abort", () => observer.disconnect());
  }

  // ---- start and end --------------------------------------------------------------------------------------

  async function boot() {
    watchWide();
    readStates();
    await Promise.all([...document.querySelectorAll(`script[type="${VIEW}"]`)].map(mountView));
    document.documentElement.dataset.labsWidgets = "ready";
  }

  async function close() {
    closing.abort();
    await Promise.all(cleanups.splice(0).map((cleanup) => cleanup()));
  }

  self.labsHost = { close };
  /** @type {Promise<void> | null} */
  let booted = null;
  const start = () => (booted ??= boot());
  if (document.readyState === "complete") start();
  // scripts with the widgets' modules may still follow this one; "load" is for a script that came late itself
  else for (const event of ["DOMContentLoaded", "load"]) addEventListener(event, start);
})();
