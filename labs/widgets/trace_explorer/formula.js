// A formula of the trace, which gives one entry of a tensor: its value, what it reads, and its text.  No document.
//
// A formula is a tree of lists, as `labs.llm.formula.parse` makes it:
//   ["number", 2]  ["index", "t"]  ["size", "dh"]  ["infinity"]  ["at", name, [tree, ...]]
//   ["+" | "-" | "*" | "/" | "//" | "%" | "**" | "==" | "<=", tree, tree]  ["neg", tree]
//   ["if", condition, then, otherwise]  ["call", "exp", tree]
//   ["sum" | "max", body, [[variable, size], ...], condition or null]
// A `scope` says what the names are: { at(name, index) -> number, sizes: letter -> number }.
// An `index` says which entry: letter -> number.
import { fill } from "../shared/dom.js";
import { range } from "../shared/numbers.js";

const ARITHMETIC = {
  "+": (a, b) => a + b,
  "-": (a, b) => a - b,
  "*": (a, b) => a * b,
  "/": (a, b) => a / b,
  "//": (a, b) => Math.floor(a / b),
  "%": (a, b) => a - b * Math.floor(a / b), // as in Python, also below zero
  "**": (a, b) => a ** b,
  "==": (a, b) => a === b,
  "<=": (a, b) => a <= b,
};

const FUNCTIONS = { exp: Math.exp, log: Math.log, sqrt: Math.sqrt, cos: Math.cos, sin: Math.sin };

/** The number that a formula gives for the entry at `index`. */
export function formulaValue(tree, scope, index) {
  const [kind, first, second] = tree;
  const value = (part) => formulaValue(part, scope, index);
  switch (kind) {
    case "number":
      return first;
    case "index":
      return index[first];
    case "size":
      return scope.sizes[first];
    case "infinity":
      return Infinity;
    case "at":
      return scope.at(first, second.map(value));
    case "neg":
      return -value(first);
    case "call":
      return FUNCTIONS[first](value(second));
    case "if":
      return value(chosenBranch(tree, scope, index));
    case "sum":
      return termsOf(tree, scope, index).reduce((sum, term) => sum + formulaValue(first, scope, term), 0);
    case "max":
      return Math.max(...termsOf(tree, scope, index).map((term) => formulaValue(first, scope, term)));
    default:
      return ARITHMETIC[kind](value(first), value(second));
  }
}

function chosenBranch(tree, scope, index) {
  const [, condition, then, otherwise] = tree;
  return formulaValue(condition, scope, index) ? then : otherwise;
}

/** The index of each term of a sum or maximum whose condition holds, in order. */
function termsOf([, , bounds, condition], scope, index) {
  const holds = (term) => condition === null || formulaValue(condition, scope, term);
  return everyTerm(bounds, scope, index).filter(holds);
}

function everyTerm(bounds, scope, index) {
  return bounds.reduce(
    (terms, [variable, size]) =>
      terms.flatMap((term) =>
        range(scope.sizes[size]).map((value) => ({ ...term, [variable]: value })),
      ),
    [index],
  );
}

/**
 * The entries that went into the number, in the order in which the formula names them: { name, index }.  An entry
 * that is read twice comes twice.  Those that only kept a term out of a sum are not among them.
 */
export function formulaReads(tree, scope, index) {
  const [kind, first, second] = tree;
  const reads = (part) => formulaReads(part, scope, index);
  switch (kind) {
    case "number":
    case "index":
    case "size":
    case "infinity":
      return [];
    case "at": {
      const place = second.map((part) => formulaValue(part, scope, index));
      return [...second.flatMap(reads), { name: first, index: place }];
    }
    case "neg":
      return reads(first);
    case "call":
      return reads(second);
    case "if":
      return [...reads(first), ...reads(chosenBranch(tree, scope, index))];
    case "sum":
    case "max":
      return termsOf(tree, scope, index).flatMap((term) => [
        ...(tree[3] === null ? [] : formulaReads(tree[3], scope, term)),
        ...formulaReads(first, scope, term),
      ]);
    default:
      return [...reads(first), ...reads(second)];
  }
}

/** The conditions that choose between two formulas, as trees; not those within a sum. */
export function conditionsOf(tree, scope, index) {
  if (!Array.isArray(tree) || tree[0] === "sum" || tree[0] === "max") return [];
  if (tree[0] !== "if") return tree.flatMap((part) => conditionsOf(part, scope, index));
  return [tree[1], ...conditionsOf(chosenBranch(tree, scope, index), scope, index)];
}

/** The entries, as trees, that serve as an index of another and depend on no variable of a sum. */
export function lookUps(tree, index) {
  if (!Array.isArray(tree)) return [];
  const own = tree[0] === "at" ? tree[2].filter((part) => part[0] === "at" && isPlaced(part, index)) : [];
  return [...own, ...tree.flatMap((part) => lookUps(part, index))];
}

// ---- text -----------------------------------------------------------------------------------------------------

// How tightly each form binds: what binds less tightly than its place demands gets brackets.
const LOOSE = 0; // a whole formula
const SUM = 1;
const PRODUCT = 2;
const POWER = 3;
const ATOM = 4;

const SIGNS = {
  "==": [" = ", SUM, SUM, LOOSE],
  "!=": [" ≠ ", SUM, SUM, LOOSE], // what a condition says that does not hold
  ">": [" > ", SUM, SUM, LOOSE],
  "<=": [" ≤ ", SUM, SUM, LOOSE],
  "+": [" + ", SUM, PRODUCT, SUM],
  "-": [" - ", SUM, PRODUCT, SUM],
  "*": [" · ", PRODUCT, POWER, PRODUCT],
  "/": [" / ", PRODUCT, POWER, PRODUCT],
  "%": [" mod ", PRODUCT, POWER, PRODUCT],
  "**": ["^", ATOM, ATOM, POWER],
};

/**
 * The text of a formula, with the names, the indices or the numbers in their places: what `write` makes of
 * the forms that depend on it, as { text, binds }.
 */
function formulaText(tree, write) {
  const own = write(tree);
  if (own) return own;
  const [kind, first, second] = tree;
  const within = (part, least) => bracketed(formulaText(part, write), least);
  if (kind === "neg") return { text: `-${within(first, POWER)}`, binds: SUM };
  if (kind === "call" && first === "sqrt") return { text: `√${within(second, ATOM)}`, binds: ATOM };
  if (kind === "call") return { text: `${first}(${within(second, LOOSE)})`, binds: ATOM };
  if (kind === "//") return { text: `⌊${within(first, PRODUCT)} / ${within(second, POWER)}⌋`, binds: ATOM };
  const [sign, left, right, binds] = SIGNS[kind];
  return { text: `${within(first, left)}${sign}${within(second, right)}`, binds };
}

function bracketed({ text, binds }, least) {
  return binds < least ? `(${text})` : text;
}

const atom = (text) => ({ text, binds: ATOM });

/** A text without the blanks around its signs: an index stands closer than a formula. */
function dense(text) {
  return text.replace(/ (?=[-+·/])|(?<=[-+·/]) /g, "");
}

/** `name[i,j]`, or the name alone where there is no index. */
export function entryName(name, places) {
  return places.length === 0 ? name : `${name}[${places.join(",")}]`;
}

/**
 * The formula in symbols: `(Σ_(e) q_rot[b,h,i,e] · k_rot[b,h,j,e]) / √dh`; the brackets after `_` are to
 * be set low.  `texts` has { if_else }.
 */
export function symbolText(tree, texts) {
  const write = (part) => {
    const [kind, first, second, third] = part;
    const text = (inner) => formulaText(inner, write).text;
    if (kind === "number" || kind === "index" || kind === "size") return atom(String(first));
    if (kind === "infinity") return atom("inf");
    if (kind === "at") return atom(entryName(first, second.map((each) => dense(text(each)))));
    if (kind === "if") {
      const parts = { then: text(second), condition: text(first), otherwise: text(third) };
      return { text: fill(texts.if_else, parts), binds: LOOSE };
    }
    if (kind !== "sum" && kind !== "max") return null;
    const low = second.map(([variable]) => variable).join(",") + (third === null ? "" : `: ${text(third)}`);
    const body = bracketed(formulaText(first, write), PRODUCT);
    return { text: `${kind === "sum" ? "Σ" : "max"}_(${low}) ${body}`, binds: SUM };
  };
  return formulaText(tree, write).text;
}

/** The same for one entry: its indices in their places, and of an `if` the branch that holds. */
export function placedText(tree, scope, index) {
  const write = (part) => {
    const [kind, first, second, third] = part;
    if (kind === "number") return atom(String(first));
    if (kind === "size") return atom(String(scope.sizes[first]));
    if (kind === "index") return atom(String(index[first] ?? first)); // the variable of a sum stays
    if (kind === "infinity") return atom("inf");
    if (kind === "at") return atom(entryName(first, second.map(place)));
    if (kind === "if") return formulaText(chosenBranch(part, scope, index), write);
    if (kind !== "sum" && kind !== "max") return null;
    const low = second.map(([variable]) => variable).join(",");
    const when = third === null ? "" : `: ${formulaText(third, write).text}`;
    const body = bracketed(formulaText(first, write), PRODUCT);
    return { text: `${kind === "sum" ? "Σ" : "max"}_(${low}${when}) ${body}`, binds: SUM };
  };
  /** An index: a number where nothing in it is the variable of a sum. */
  const place = (part) => {
    const value = isPlaced(part, index) ? formulaValue(part, scope, index) : null;
    return value === null ? dense(formulaText(part, write).text) : String(value);
  };
  return formulaText(tree, write).text;
}

/** Whether every index variable in a formula has a value. */
function isPlaced(tree, index) {
  if (!Array.isArray(tree)) return true;
  return tree[0] === "index" ? tree[1] in index : tree.slice(1).every((part) => isPlaced(part, index));
}

/**
 * The formula with the numbers filled in, every sum written out: `(0.12 · 0.5 + (-0.3) · 0.4) / √4`.
 * `write(value)` makes the text of an entry's number.
 */
export function filledText(tree, scope, index, write) {
  return filledIn(tree, scope, index, write).text;
}

function filledIn(tree, scope, index, write) {
  const put = (part) => {
    const [kind, first] = part;
    if (kind === "number") return atom(String(first));
    if (kind === "size") return atom(String(scope.sizes[first]));
    if (kind === "index") return atom(String(index[first]));
    if (kind === "infinity") return atom("inf");
    if (kind === "at") return numberAtom(write(formulaValue(part, scope, index)));
    if (kind === "if") return formulaText(chosenBranch(part, scope, index), put);
    if (kind !== "sum" && kind !== "max") return null;
    const terms = termsOf(part, scope, index).map((term) => filledIn(first, scope, term, write));
    if (kind === "max") return atom(`max(${terms.map(({ text }) => text).join(", ")})`);
    if (terms.length < 2) return terms[0] ?? atom("0");
    return { text: terms.map((term, n) => bracketed(term, n === 0 ? SUM : PRODUCT)).join(" + "), binds: SUM };
  };
  return formulaText(tree, put);
}

/** A number in a formula: with a sign it needs brackets, like a sum. */
function numberAtom(text) {
  return { text, binds: text.startsWith("-") ? SUM : ATOM };
}

// ---- terms ----------------------------------------------------------------------------------------------------

/**
 * The terms of which a number is made, or null where there are no more than two to add up:
 *   kind    "sum", or "max": the terms of which the largest is taken
 *   whole   whether the terms add up to the number itself; else they are a part of the formula
 *   names   the tensors whose entries are multiplied in every term; empty where a term is something else
 *   terms   one { index: [[variable, value], ...], text, factors: [number, ...], value } a term; `text` names the
 *           term where it has no variable
 *   total   what they add up to, or their maximum
 */
export function formulaTerms(tree, scope, index) {
  const held = tree[0] === "if" ? chosenBranch(tree, scope, index) : tree;
  if (held[0] === "if") return formulaTerms(held, scope, index);
  const loop = firstLoop(held);
  if (loop) return loopTerms(loop, held, scope, index);
  const added = addedTerms(held, scope, index);
  return added.terms.length > 2 ? added : null;
}

/** The first sum or maximum in a formula, or null. */
function firstLoop(tree) {
  if (!Array.isArray(tree)) return null;
  if (tree[0] === "sum" || tree[0] === "max") return tree;
  for (const part of tree.slice(1)) {
    const found = firstLoop(part);
    if (found) return found;
  }
  return null;
}

function loopTerms(loop, tree, scope, index) {
  const [kind, body, bounds] = loop;
  const factors = factorsOf(body);
  const terms = termsOf(loop, scope, index).map((term) => ({
    index: bounds.map(([variable]) => [variable, term[variable]]),
    text: null,
    factors: factors.map((factor) => formulaValue(factor, scope, term)),
    value: formulaValue(body, scope, term),
  }));
  const names = factors.map(([, name]) => name);
  return { kind, whole: loop === tree, names, terms, total: formulaValue(loop, scope, index) };
}

/** The entries that are multiplied in a term, if that is all it is: two or more. */
function factorsOf(tree) {
  if (tree[0] === "**" && tree[1][0] === "at" && tree[2][1] === 2) return [tree[1], tree[1]];
  const flat = (part) => (part[0] === "*" ? [...flat(part[1]), ...flat(part[2])] : [part]);
  const factors = flat(tree);
  return factors.length > 1 && factors.every(([kind]) => kind === "at") ? factors : [];
}

/** The terms of the additions and subtractions that a formula is made of. */
function addedTerms(sum, scope, index) {
  const flat = (tree, sign) => {
    const [kind, first, second] = tree;
    if (kind !== "+" && kind !== "-") return [{ tree, sign }];
    return [...flat(first, sign), ...flat(second, kind === "-" ? -sign : sign)];
  };
  const terms = flat(sum, 1).map(({ tree, sign }) => ({
    index: [],
    text: (sign < 0 ? "- " : "") + placedText(tree, scope, index),
    factors: [],
    value: sign * formulaValue(tree, scope, index),
  }));
  return { kind: "sum", whole: true, names: [], terms, total: formulaValue(sum, scope, index) };
}
