"""One line of Python that gives one entry of a tensor: read, refused if it is anything else, and evaluated.

    sum(q_rot[b, h, i, e] * k_rot[b, h, j, e] for e in range(dh)) / sqrt(dh)

is the formula of scores[b, h, i, j]. `parse` turns it into a tree of lists, strings and numbers, so that
JSON can carry it to other languages. These are all the trees there are; a, b stand for trees:

    ["number", 2]                          ["infinity"]                 inf; -inf is ["neg", ["infinity"]]
    ["index", "t"]                         an index: an axis of the tensor, or bound by `for`
    ["size", "dh"]                         one of SIZES or SETTINGS
    ["at", "z", [a, ...]]                  an entry of a tensor
    ["+", a, b]  - * / // % **             ["neg", a]
    ["call", "exp", a]                     exp, log, sqrt, cos or sin
    ["sum", a, [["t", "T"], ...], c]       over index t in range(T) and so on, the first turning slowest;
    ["max", a, [["t", "T"], ...], c]       c is a condition, or None: all terms
    ["if", c, a, b]                        a if c else b, where only one of the two is computed
    ["==", a, b]  ["<=", a, b]             the conditions c
"""

import ast
import itertools
import math
import operator

import numpy as np

from labs.llm import arguments

#: What a formula may name without an index: the sizes, which may be ranges too, and the model's settings.
SIZES = ("B", "T", "D", "H", "dh", "F", "V")
SETTINGS = ("eps", "base")

#: The most characters of a formula. What is longer could be nested more deeply than Python can follow.
LONGEST = 300

_BINARY = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%"}
_BINARY |= {ast.Pow: "**"}
_CONDITIONS = {ast.Eq: "==", ast.LtE: "<="}
_COMPUTE = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}
_COMPUTE |= {"//": operator.floordiv, "%": operator.mod, "==": operator.eq, "<=": operator.le}
_COMPUTE |= {"**": math.pow}  # in floats: in ints 9 ** 9 ** 9 would never end


def parse(text, axes=""):
    """Turn a formula into its tree.

    How names are told apart: what is followed by [...] is a tensor; an axis of the step, or what is bound by
    `for`, is an index; everything else must be one of SIZES or SETTINGS.

    Args:
        text: one expression in one line of ASCII, at most LONGEST characters.
        axes: the index letters of the tensor whose entry the formula gives, such as "bhij".

    Returns: the tree, as at the top of this file.
    Raises: TypeError unless text and axes are str; ValueError, which shows the place, for anything but what
        the trees can say.
    """
    _require_formula(text, axes)
    try:
        expression = ast.parse(text, mode="eval").body
    except SyntaxError as error:
        start = error.offset - 1 if error.offset else len(text)  # 0 is how Python says: at the end
        raise _refusal(text, start, start + 1, f"must be one Python expression: {error.msg}") from None
    return _Reader(text).value(expression, frozenset(axes))


def _require_formula(text, axes):
    for name, value, what in (("text", text, "one line of Python"), ("axes", axes, "letters such as 'bhij'")):
        if not isinstance(value, str):
            raise TypeError(
                f"{name} must be a str, got {arguments.shown(value)} ({type(value).__name__}): write {what}"
            )
    if not text.isascii() or not text.isprintable() or "#" in text:
        raise ValueError(
            f"a formula must be one line of ASCII without a comment, got {arguments.shown(text)}: "
            "leave out what is not"
        )
    if len(text) > LONGEST:
        raise ValueError(
            f"a formula must have at most {LONGEST} characters, got {len(text)}: give a part of it a name, "
            "as a tensor of its own"
        )
    if len(set(axes)) < len(axes) or not set(axes).isdisjoint(SIZES):
        raise ValueError(
            f"axes must be different letters that are no sizes {SIZES}, got {arguments.shown(axes)}: rename"
        )


class _Reader:
    """Reads the syntax tree of one formula; `indices` are the names that are bound where it reads."""

    def __init__(self, text):
        self.text = text

    def value(self, node, indices):
        """Return the tree of an expression that has a number for its value."""
        match node:
            case ast.Constant(value=number) if type(number) in (int, float) and math.isfinite(number):
                return ["number", number]
            case ast.Name(id=name):
                return self.name(node, name, indices)
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Tuple(elts=[_, *_] as entries)):
                return ["at", name, [self.value(entry, indices) for entry in entries]]
            case ast.Subscript(value=ast.Name(id=name), slice=ast.expr() as entry):
                return ["at", name, [self.value(entry, indices)]]
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return ["neg", self.value(operand, indices)]
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
                return [_BINARY[type(op)], self.value(left, indices), self.value(right, indices)]
            case ast.IfExp(test=test, body=then, orelse=otherwise):
                condition = self.condition(test, indices)
                return ["if", condition, self.value(then, indices), self.value(otherwise, indices)]
            case ast.Call(func=ast.Name(id=name), args=[argument], keywords=[]):
                return self.call(node, name, argument, indices)
        raise self.refuse(
            node,
            "may hold numbers, indices, sizes, entries such as x[b, t], + - * / // % **, "
            "if-else, exp, log, sqrt, cos, sin, and sum or max over range",
        )

    def name(self, node, name, indices):
        if name in indices:
            return ["index", name]
        if name in SIZES + SETTINGS:
            return ["size", name]
        if name == "inf":
            return ["infinity"]
        raise self.refuse(
            node,
            f"knows the indices {sorted(indices)} and {', '.join(SIZES + SETTINGS)} here, not {name}: "
            "bind an index by `for`, and give a tensor its indices in brackets",
        )

    def call(self, node, name, argument, indices):
        if name in ("sum", "max") and isinstance(argument, ast.GeneratorExp):
            return self.over(name, argument, indices)
        if name in _FUNCTIONS:
            return ["call", name, self.value(argument, indices)]
        raise self.refuse(node, f"may call {', '.join(_FUNCTIONS)}, or sum and max of (... for ...)")

    def over(self, name, generator, indices):
        """Return the tree of a sum or a maximum: body for a in range(A) for b in range(B) if condition."""
        loops, condition = [], None
        for loop in generator.generators:
            match loop:
                case ast.comprehension(
                    target=ast.Name(id=variable),
                    iter=ast.Call(func=ast.Name(id="range"), args=[ast.Name(id=size)], keywords=[]),
                    is_async=0,
                ) if size in SIZES:
                    pass
                case _:
                    raise self.refuse(
                        loop.iter, f"must loop with `for index in range(size)`, size in {SIZES}"
                    )
            if variable in indices or variable in SIZES + SETTINGS + _WORDS:
                raise self.refuse(loop.target, f"must not use the name {variable} twice: take another letter")
            if condition is not None or len(loop.ifs) > 1:
                raise self.refuse(loop.iter, "may have one condition, after the last range")
            indices |= {variable}
            loops.append([variable, size])
            if loop.ifs:
                condition = self.condition(loop.ifs[0], indices)
        return [name, self.value(generator.elt, indices), loops, condition]

    def condition(self, node, indices):
        match node:
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _CONDITIONS:
                return [_CONDITIONS[type(op)], self.value(left, indices), self.value(right, indices)]
        raise self.refuse(node, "may have the conditions a == b and a <= b")

    def refuse(self, node, rule):
        return _refusal(self.text, node.col_offset, node.end_col_offset, rule)


def _refusal(text, start, end, rule):
    marks = " " * start + "^" * max(1, end - start)
    return ValueError(f"a formula {rule}\n    {text}\n    {marks}")


def evaluate(tree, tensors, sizes, index):
    """Compute one entry in Python floats.

    Args:
        tree: as from parse.
        tensors: an array for each name that the formula reads.
        sizes: a number for each of SIZES and SETTINGS that it names.
        index: a whole number for each axis letter.

    Returns: a float.
    Raises: TypeError for anything that is no tree, dict, array or whole number where one should be;
        IndexError for an entry outside its array (NumPy would wrap -1) or at a fraction; KeyError for an
        unknown name; ValueError or ArithmeticError where the formula has no value, like log(0) and 1 / 0, or
        none that a float can hold.
    """
    arguments.require_dict("tensors", tensors)
    return float(_evaluated(tree, lambda name, place: _entry(tensors[name], name, place), sizes, index))


def evaluate_all(tree, tensors, sizes, axes):
    """Compute every entry of a tensor at once: each index letter is an axis of arrays that broadcast.

    Args:
        tree, tensors, sizes: as for evaluate.
        axes: the length of each axis by its letter, in order.

    Returns: float64, with these axes. It needs memory for all terms of a sum at once, and may add them in
        another order than evaluate.
    Raises: as evaluate.
    """
    arguments.require_dict("tensors", tensors)
    arguments.require_dict("sizes", sizes, "give the number of each size by its name")
    arguments.require_dict("axes", axes, "give the length of each axis by its letter")
    axes = {letter: arguments.require_size(f"axes[{letter!r}]", length) for letter, length in axes.items()}
    _require_tree(tree)
    with np.errstate(all="raise", under="ignore"):
        value = _array(tree, tensors, sizes, axes, np.True_)
    return np.array(np.broadcast_to(value, tuple(axes.values())), np.float64)


def _array(tree, tensors, sizes, axes, wanted):
    """Return the values of a tree as an array that broadcasts to the lengths of `axes`.

    `wanted` is False where an `if` has chosen the other branch: what stands there is never used, and what it
    would read may not be there.
    """

    def array(child):
        return _array(child, tensors, sizes, axes, wanted)

    match tree:
        case ["number", number]:
            return number
        case ["infinity"]:
            return math.inf
        case ["size", name]:
            return sizes[name]
        case ["index", letter]:
            after = len(axes) - 1 - list(axes).index(letter)
            return np.arange(axes[letter]).reshape(-1, *[1] * after)
        case ["at", name, entries]:
            return _entries(tensors[name], name, [np.where(wanted, array(entry), 0) for entry in entries])
        case ["neg", operand]:
            return -array(operand)
        case ["call", name, argument]:
            value = array(argument)
            with np.errstate(over="ignore" if name == "exp" else "raise"):  # as in _exp
                return getattr(np, name)(value)
        case ["if", condition, then, otherwise]:
            chosen = array(condition)
            return np.where(
                chosen,
                _array(then, tensors, sizes, axes, wanted & chosen),
                _array(otherwise, tensors, sizes, axes, wanted & ~chosen),
            )
        case ["sum" | "max" as over, body, loops, condition]:
            inner = axes | {letter: sizes[size] for letter, size in loops}
            new = tuple(range(-len(loops), 0))
            among = np.expand_dims(wanted, new)
            if condition is not None:
                among = among & _array(condition, tensors, sizes, inner, among)
            if over == "max" and (wanted & ~among.any(axis=new)).any():
                raise ValueError("a maximum must have at least one term")
            terms = np.where(among, _array(body, tensors, sizes, inner, among), _NOTHING[over])
            lengths = tuple(inner[letter] for letter, _ in loops)
            terms = np.broadcast_to(terms, np.broadcast_shapes(terms.shape, lengths))
            return getattr(terms, over)(axis=new)
        case ["**", base, exponent]:
            return np.power(np.asarray(array(base), float), array(exponent))
        case [sign, left, right]:
            return _COMPUTE[sign](array(left), array(right))


#: What adds nothing to a sum or a maximum.
_NOTHING = {"sum": 0, "max": -math.inf}


def _entries(tensor, name, places):
    """Return the entries of a tensor at whole numbers, one array of them for each axis."""
    _require_tensor(name, tensor)
    inside = len(places) == tensor.ndim and all(
        place.dtype.kind in "iu" and (place >= 0).all() and (place < length).all()
        for place, length in zip(places, tensor.shape, strict=True)
    )
    if not inside:
        raise IndexError(f"{name} must be read inside its shape {tensor.shape}, got an index outside")
    return tensor[tuple(places)]


def _require_tensor(name, tensor):
    if not isinstance(tensor, np.ndarray):
        raise TypeError(f"{name} must be an array, got {type(tensor).__name__}: convert it with np.array")


def leaves(tree, sizes, index, tensors):
    """List the entries that `evaluate` reads, in the order in which it does, each as often as it does.

    Args: as for evaluate; `tensors` decides conditions, and indices that are themselves entries.

    Returns: a list of pairs (name, index): a str, and a tuple of ints.
    Raises: as evaluate.
    """
    arguments.require_dict("tensors", tensors)
    found = []

    def read(name, place):
        found.append((name, place))
        return _entry(tensors[name], name, place)

    _evaluated(tree, read, sizes, index)
    return found


def tensor_names(tree):
    """Return the names of the tensors that a formula reads, each once, as they first appear in it.

    Raises: TypeError for another tree.
    """
    _require_tree(tree)
    names = [tree[1]] if tree[0] == "at" else []
    for child in children(tree):
        names += tensor_names(child)
    return list(dict.fromkeys(names))


def children(tree):
    """Return the trees that a tree is made of, as they stand in the formula.

    Raises: TypeError for another tree.
    """
    _require_node(tree)
    match tree:
        case ["number" | "index" | "size" | "infinity", *_]:
            return []
        case ["at", _, entries]:
            return entries
        case ["call", _, argument]:
            return [argument]
        case ["sum" | "max", body, _, condition]:
            return [body] if condition is None else [body, condition]
        case [_, *operands]:
            return operands


def _require_node(tree):
    """Raise TypeError unless a tree has the parts of one of those at the top of this file."""
    if not isinstance(tree, list):
        raise TypeError(
            f"tree must be a list, got {arguments.shown(tree)} ({type(tree).__name__}): "
            "parse the formula first"
        )
    match tree:
        case ["number", int() | float()] | ["index" | "size", str()] | ["infinity"] | ["neg", _]:
            return
        case ["at", str(), [_, *_]]:
            return
        case ["call", str(name), _] if name in _FUNCTIONS:
            return
        case ["sum" | "max", _, [*loops], _] if all(
            isinstance(loop, list) and len(loop) == 2 for loop in loops
        ):
            return
        case ["if", _, _, _]:
            return
        case [str(sign), _, _] if sign in _COMPUTE:
            return
    raise TypeError(
        f"tree must be made of what parse returns, got {arguments.shown(tree)}: parse the formula"
    )


def _require_tree(tree):
    for child in children(tree):
        _require_tree(child)


def _evaluated(tree, read, sizes, index):
    arguments.require_dict("sizes", sizes, "give the number of each size by its name")
    arguments.require_dict("index", index, "give the number of each axis letter")
    index = {
        letter: i if type(i) is int else arguments.require_int(f"index {arguments.shown(letter)}", i)
        for letter, i in index.items()
    }
    try:
        value = _value(tree, read, sizes, index)
        if not isinstance(value, (int, float)):
            raise TypeError("tree must give a number")
        return value
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        _require_tree(tree)  # only now: a tree is made once, and evaluated for every entry
        raise


def _entry(array, name, place):
    _require_tensor(name, array)
    if len(place) != array.ndim or not all(
        type(i) is int and 0 <= i < size for i, size in zip(place, array.shape, strict=True)
    ):
        raise IndexError(
            f"{name} must be read inside its shape {array.shape}, got index {arguments.shown(place)}"
        )
    return array.item(place)


def _value(tree, read, sizes, index):
    kind = tree[0]
    if kind in _COMPUTE:
        return _COMPUTE[kind](_value(tree[1], read, sizes, index), _value(tree[2], read, sizes, index))
    if kind == "at":
        return read(tree[1], tuple([_value(entry, read, sizes, index) for entry in tree[2]]))
    if kind == "index":
        return index[tree[1]]
    if kind == "size":
        return sizes[tree[1]]
    if kind == "number":
        return tree[1]
    if kind == "infinity":
        return math.inf
    if kind == "neg":
        return -_value(tree[1], read, sizes, index)
    if kind == "call":
        return _FUNCTIONS[tree[1]](_value(tree[2], read, sizes, index))
    if kind == "if":
        return _value(tree[2] if _value(tree[1], read, sizes, index) else tree[3], read, sizes, index)
    return _OVER[kind](_terms(tree, read, sizes, index))


def _terms(tree, read, sizes, index):
    """Yield the terms of a sum or a maximum."""
    _, body, loops, condition = tree
    variables = [variable for variable, _ in loops]
    for values in itertools.product(*(range(sizes[size]) for _, size in loops)):
        inner = {**index, **dict(zip(variables, values, strict=True))}
        if condition is None or _value(condition, read, sizes, inner):
            yield _value(body, read, sizes, inner)


def _exp(x):
    """Return e ** x, and infinity where `math.exp` refuses: 1 / (1 + exp(-x)) is then a correct 0."""
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf


_FUNCTIONS = {"exp": _exp, "log": math.log, "sqrt": math.sqrt, "cos": math.cos, "sin": math.sin}
_OVER = {"sum": sum, "max": max}

#: What means the same in every formula: no index can have its name.
_WORDS = (*_FUNCTIONS, *_OVER, "range", "inf")
