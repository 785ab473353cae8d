"""From a text to batches: characters become ids, and every input comes with the tokens that follow it.

Letters: N characters of a text, B batch, T positions (the context), V vocabulary size.
"""

from typing import NamedTuple

import numpy as np

from labs.llm import shapes


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
        vocabulary: distinct characters, as from build_vocabulary.

    Returns: ids, integers in [0, V), (N,).
    Raises: ValueError for a character that is not in the vocabulary, with its position; for an empty text;
        for a vocabulary that holds something twice, or anything but single characters.
    """
    _require_text(text)
    place = _places(vocabulary)
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

    Raises: TypeError unless the ids are integers; ValueError if one is not in [0, V), or ids are not (N,).
    """
    ids = shapes.as_ids("ids", ids, len(_places(vocabulary)))
    shapes.require_axes("ids", ids, "N")
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
    Raises: ValueError if the share is not in (0, 1) or leaves a part without a character.
    """
    vocabulary = build_vocabulary(text)
    if not 0 < validation_share < 1:
        raise ValueError(
            f"validation_share must lie between 0 and 1, got {validation_share!r}: 0.1 is a tenth"
        )
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
    shapes.require_size("batch_size", batch_size)
    if not isinstance(rng, np.random.Generator):
        raise TypeError(f"rng must be a np.random.Generator, got {type(rng).__name__}: see default_rng(seed)")
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
    starts = np.arange(0, len(ids) - context, context)
    return _cut(ids, starts, context)


def require_text_ids(name, ids, context):
    """Return `ids` as an array; raise unless they are the integers of a text, at least T + 1 of them."""
    ids = np.asarray(ids)
    shapes.require_axes(name, ids, "N")
    if ids.dtype.kind not in "iu":
        raise TypeError(f"{name} must be integers, got dtype {ids.dtype}: encode the text first")
    shapes.require_size("context", context)
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


def _places(vocabulary):
    """Return the id of each character as a dict."""
    place = {character: i for i, character in enumerate(vocabulary)}
    if len(place) != len(vocabulary) or not all(isinstance(c, str) and len(c) == 1 for c in place):
        raise ValueError(
            f"vocabulary must hold single characters, each once, got {vocabulary!r}: see build_vocabulary"
        )
    return place
