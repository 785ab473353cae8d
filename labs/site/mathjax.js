// Runs in QuickJS, after MathJax 3's own files: TeX in, SVG and MathML out.  No document, no page, no network.
// `typeset` answers with JSON text, because that is what crosses from QuickJS to Python intact.

const { mathjax, adaptors, handlers, input, output, core } = MathJax._;
const adaptor = adaptors.liteAdaptor.liteAdaptor();
handlers.html_ts.RegisterHTMLHandler(adaptor);

const tex = new input.tex_ts.TeX({
  // Without "noundefined" an unknown command is an error and not red text on the page.
  packages: ["base", "ams", "newcommand", "boldsymbol", "color", "textmacros", "mathtools", "html"],
  formatError(_, error) { throw error; },
});
const svg = new output.svg_ts.SVG({ fontCache: "global", font: new output.svg.fonts.tex_ts.TeXFont() });
const page = mathjax.mathjax.document("", { InputJax: tex, OutputJax: svg });
const mathml = new core.MmlTree.SerializedMmlVisitor.SerializedMmlVisitor();

function typeset(source, display) {
  try {
    tex.reset();           // no equation tag is remembered from the formula before
    svg.clearFontCache();  // `glyphs` lists those of this formula only
    const drawn = adaptor.firstChild(page.convert(source, { display }));
    const tree = page.convert(source, { display, end: core.MathItem.STATE.CONVERT });
    return JSON.stringify({
      svg: adaptor.outerHTML(drawn),
      glyphs: adaptor.outerHTML(svg.fontCache.getCache()),
      mathml: mathml.visitTree(tree),
    });
  } catch (error) {
    return JSON.stringify({ error: String(error.message ?? error) });
  }
}
