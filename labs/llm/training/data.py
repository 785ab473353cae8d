"""From a text to batches: characters become ids, and every input comes with the tokens that follow it.

Letters: N characters of a text, B batch, T positions (the context), V vocabulary size.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from labs.llm import arguments


def build_vocabulary(text):
    """Return the distinct characters of a text, sorted: a character's id is its place, V is their number.

    Raises: ValueError for an empty text, TypeError unless it is a str.
    """
    _require_text(text)
    return tuple(sorted(set(text)))


def encode(text, vocabulary):
    """Turn a text into ids.

    Args:
        text: a str of N >= 1 characters.
        vocabulary: distinct characters in order, as from build_vocabulary. A set has no order to rely on.

    Returns: ids, integers in [0, V), (N,).
    Raises: ValueError for a character that is not in the vocabulary, with its position; for an empty text;
        for a vocabulary that holds something twice, or anything but single characters; TypeError if the
        text or the vocabulary is of another kind.
    """
    _require_text(text)
    require_vocabulary(vocabulary)
    place = {character: i for i, character in enumerate(vocabulary)}
    try:
        return np.array([place[character] for character in text])
    except KeyError:
        position = next(i for i, character in enumerate(text) if character not in place)
        raise ValueError(
            f"text must be made of the V = {len(place)} characters of the vocabulary, got "
            f"{text[position]!r} at position {position}: build the vocabulary from this text, or replace it"
        ) from None


def decode(ids, vocabulary):
    """Turn ids, (N,), into a text: the inverse of encode.

    Raises: TypeError unless the ids are integers; ValueError if one is not in [0, V), or ids are not (N,);
        one of the two if encode would refuse the vocabulary.
    """
    require_vocabulary(vocabulary)
    ids = arguments.as_ids("ids", ids, len(vocabulary))
    arguments.require_axes("ids", ids, "N")
    return "".join(vocabulary[i] for i in ids)


class Corpus(NamedTuple):
    """A text in ids: one part to train on, and a later one that training never sees."""

    vocabulary: tuple[str, ...]  # V characters
    training: np.ndarray  # (N_training,), the beginning of the text
    validation: np.ndarray  # (N_validation,), the rest


def build_corpus(text, validation_share=0.1):
    """Encode a text with its own vocabulary, and cut it in two.

    The cut is one place, not a random choice of characters: neighbours in a text predict each other.

    Args:
        text: a str.
        validation_share: the share of the characters, rounded down, that goes to validation; in (0, 1).

    Returns: the Corpus.
    Raises: ValueError if the share is not in (0, 1) or leaves a part without a character; TypeError unless
        text is a str and the share a real number.
    """
    vocabulary = build_vocabulary(text)
    validation_share = arguments.require_number("validation_share", validation_share)
    if not 0 < validation_share < 1:
        raise ValueError(f"validation_share must lie between 0 and 1, got {validation_share}: 0.1 is a tenth")
    ids = encode(text, vocabulary)
    n_validation = int(validation_share * len(ids))
    if n_validation == 0:
        raise ValueError(
            f"text must be longer for validation_share = {validation_share}, got N = {len(ids)} characters: "
            "none is left to validate on"
        )
    return Corpus(vocabulary, ids[:-n_validation], ids[-n_validation:])


def draw_batch(ids, batch_size, context, rng):
    """Cut windows out of a text, at random places.

        inputs[b, t]  = ids[start_b + t],       start_b uniform in 0, ..., N - T - 1
        targets[b, t] = ids[start_b + t + 1]    the token that follows

    Windows may overlap, and one may come twice; none reaches beyond the text's end.

    Args:
        ids: a text, integers, (N,).
        batch_size: B.
        context: T.
        rng: the np.random.Generator that draws the places. One call takes B numbers from it.

    Returns: inputs and targets, (B, T) each.
    Raises: ValueError if the text has fewer than T + 1 ids: T inputs and the target of the last.
    """
    ids = require_text_ids("ids", ids, context)
    batch_size, context = arguments.require_size("batch_size", batch_size), int(context)
    arguments.require_rng("rng", rng)
    starts = rng.integers(0, len(ids) - context, size=batch_size)
    return _cut(ids, starts, context)


def windows(ids, context):
    """Cut a text into consecutive windows, so that each target occurs once: for a loss without luck.

    As many windows as fit, W = (N - 1) // T of them; fewer than T targets at the end of the text go unused.

    Args:
        ids: a text, integers, (N,).
        context: T.

    Returns: inputs and targets, (W, T) each.
    Raises: ValueError if the text has fewer than T + 1 ids.
    """
    ids = require_text_ids("ids", ids, context)
    context = int(context)
    starts = np.arange(0, len(ids) - context, context)
    return _cut(ids, starts, context)


def require_text_ids(name, ids, context):
    """Return `ids` as an array; raise unless they are the integers of a text, at least T + 1 of them."""
    ids = arguments.as_integers(name, ids)
    arguments.require_axes(name, ids, "N")
    context = arguments.require_size("context", context)
    if len(ids) <= context:
        raise ValueError(
            f"{name} must hold at least T + 1 = {context + 1} tokens, T inputs and the target of the last, "
            f"got N = {len(ids)}: take a longer text or a shorter context"
        )
    return ids


def _cut(ids, starts, context):
    spans = ids[starts[:, np.newaxis] + np.arange(context + 1)]  # (B, T + 1)
    return spans[:, :-1], spans[:, 1:]


def _require_text(text):
    if not isinstance(text, str):
        raise TypeError(f"text must be a str, got {type(text).__name__}: decode bytes first")
    if not text:
        raise ValueError("text must have at least one character, got none: was the right file read?")


def require_vocabulary(vocabulary, V=None):
    """Raise unless `vocabulary` is a sequence of distinct characters, V of them unless V is None.

    Raises: TypeError for anything without an order, such as a set: its ids would change from run to run.
    """
    if not isinstance(vocabulary, Sequence):
        raise TypeError(
            f"vocabulary must be a sequence of characters, such as a tuple, got {type(vocabulary).__name__}: "
            "an id is a place in it, see build_vocabulary"
        )
    characters = all(isinstance(character, str) and len(character) == 1 for character in vocabulary)
    if not characters or len(set(vocabulary)) != len(vocabulary):
        raise ValueError(
            "vocabulary must hold single characters, each once, got "
            f"{arguments.shown(vocabulary)}: see build_vocabulary"
        )
    if V is not None and len(vocabulary) != arguments.require_size("V", V):
        raise ValueError(
            f"vocabulary must hold V = {V} characters, got {len(vocabulary)}: "
            "make the config with vocab_size=len(vocabulary)"
        )
