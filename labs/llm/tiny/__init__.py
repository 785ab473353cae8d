"""The course's one example: two five-letter inputs, a model of 808 parameters, and its stored weights.

The words are "attend" and "causal". The inputs are their first five letters, the targets the letters one
step on. The weights live in `weights.json`, rounded to two decimals, so that no number of the course
depends on a random stream; `search.py` chose them and says by which criteria.
"""

import functools
import json
from pathlib import Path

import numpy as np

from labs.llm import arguments
from labs.llm.model import ModelConfig

WORDS = ("attend", "causal")

#: The letters in alphabetical order: a letter's id is its place here.
VOCABULARY = tuple(sorted(set("".join(WORDS))))

CONFIG = ModelConfig(vocab_size=len(VOCABULARY), d_model=8, n_heads=2, n_layers=1, d_ff=16)

WEIGHTS_PATH = Path(__file__).with_name("weights.json")


def encode(word):
    """Return the ids of a word's letters, (T,).

    Raises: TypeError unless the word is a str; ValueError for an empty one, or one with a letter that is not
        in the vocabulary.
    """
    if not isinstance(word, str):
        raise TypeError(
            f"word must be a str such as 'atten', got {type(word).__name__}: join letters by ''.join(letters)"
        )
    if not word:
        raise ValueError("word must have at least one letter, got an empty word: there is nothing to encode")
    for place, letter in enumerate(word):
        if letter not in VOCABULARY:
            raise ValueError(
                f"word must be spelled with the letters {''.join(VOCABULARY)}, got {letter!r} in "
                f"{arguments.shown(word)} at place {place}: the example knows no others"
            )
    return np.array([VOCABULARY.index(letter) for letter in word])


def decode(ids):
    """Return the word that is spelled by ids, (T,): the inverse of encode."""
    ids = arguments.as_ids("ids", ids, len(VOCABULARY))
    arguments.require_axes("ids", ids, "T")
    return "".join(VOCABULARY[i] for i in ids)


def _rows(words):
    """Return the ids of equally long words as one read-only array, (B, T)."""
    ids = np.stack([encode(word) for word in words])
    ids.setflags(write=False)
    return ids


INPUT_IDS = _rows(word[:-1] for word in WORDS)  # (2, 5): atten, causa
TARGET_IDS = _rows(word[1:] for word in WORDS)  # (2, 5): ttend, ausal


def params():
    """Return the initial weights, those that the course computes with: a fresh float64 dict at every call."""
    return _stored("initial")


def trained_params():
    """Return the weights after training on the same ten targets: a fresh float64 dict at every call."""
    return _stored("trained")


def _stored(name):
    return {key: np.array(rows) for key, rows in _weights_file()[name].items()}


@functools.cache
def _weights_file():
    return json.loads(WEIGHTS_PATH.read_text(encoding="utf-8"))
