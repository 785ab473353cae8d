// Runs in the head of every page, before the theme's scripts and before anything is drawn.
(() => {
  // In a sandboxed frame, and where a reader blocks cookies, a look at the storage throws, and the theme looks.
  // A page that forgets is better than a page that breaks.
  for (const name of ["localStorage", "sessionStorage"]) {
    try {
      void self[name];
    } catch {
      const memory = new Map();
      const storage = {
        getItem: (key) => memory.get(key) ?? null,
        setItem: (key, value) => memory.set(key, String(value)),
        removeItem: (key) => memory.delete(key),
      };
      Object.defineProperty(self, name, { value: storage });
    }
  }

  // The theme learns only after loading that the reader prefers dark pages; then colours and sizes would jump.
  const page = document.documentElement.dataset;
  page.mode = localStorage.getItem("mode") || page.theme;
  const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  page.theme = page.mode === "auto" ? system : page.mode;

  // Paper is white, so a dark page prints as a light one; and nobody can click on paper, so its folds are open.
  // Most browsers let labs.css open them for print, which leaves the screen alone; the others need this.
  const styled = CSS.supports("selector(::details-content)");
  let theme;
  let folds;
  addEventListener("beforeprint", () => {
    theme = page.theme;
    page.theme = "light";
    folds = styled ? [] : [...document.querySelectorAll("details:not([open])")];
    for (const fold of folds) fold.open = true;
  });
  addEventListener("afterprint", () => {
    page.theme = theme;
    for (const fold of folds) fold.open = false;
  });
})();
