"""A point of a training run that can be returned to, in memory and in a file.

The file is an `.npz` archive: `header`, a text in JSON, and the arrays of the parameters and of AdamW. It is
read without pickle, which would let whoever wrote the file run code here.
"""

import json
import os
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from labs.llm import optim
from labs.llm.model import ModelConfig, check_params

FORMAT = "labs.llm checkpoint 1"


class Checkpoint(NamedTuple):
    """All that the next training step depends on, beside the text and the settings of the training."""

    config: ModelConfig
    vocabulary: tuple[str, ...]  # V characters
    params: dict[str, np.ndarray]
    optimizer: optim.AdamWState
    rng: dict[str, Any]  # the state of the PCG64 generator that draws the batches

    @property
    def step(self):
        """How many steps were taken."""
        return self.optimizer.step


def save(path, checkpoint):
    """Write a checkpoint to a file, whole or not at all.

    The new file is written beside the old one, flushed to the disk, and renamed over it. Whatever happens on
    the way, a crash included, `path` holds the old checkpoint or the new one.

    Args:
        path: of the file; its folder exists.
        checkpoint: the Checkpoint.

    Raises: ValueError or TypeError if the parts of the checkpoint do not fit together; OSError if the file
        cannot be written. Either way the old file stays.
    """
    _check(checkpoint)
    path = Path(path)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}-") as folder:
        unfinished = Path(folder) / path.name
        with unfinished.open("wb") as file:
            np.savez(file, **_arrays(checkpoint))
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)


def load(path):
    """Read a checkpoint from a file that `save` wrote.

    Args:
        path: of the file.

    Returns: the Checkpoint, of fresh arrays.
    Raises: ValueError if the file is truncated, damaged, not a checkpoint, or its parts do not fit together;
        OSError (such as FileNotFoundError) if it cannot be opened.
    """
    with Path(path).open("rb") as file:
        try:
            checkpoint = _read(file)
            _check(checkpoint)
        except Exception as error:  # whatever zipfile, NumPy and JSON find wrong with a foreign file
            raise ValueError(
                f"path must be a checkpoint written by save, got {str(path)!r}, in which reading found "
                f"{type(error).__name__}: {error}. Go back to an earlier checkpoint, or start anew"
            ) from error
    return checkpoint


def _arrays(checkpoint):
    """Return the checkpoint as one flat dict of arrays."""
    header = {
        "format": FORMAT,
        "config": asdict(checkpoint.config),
        "vocabulary": checkpoint.vocabulary,
        "step": checkpoint.step,
        "rng": checkpoint.rng,
    }
    arrays = {"header": np.array(json.dumps(header))}
    for part, group in _groups(checkpoint.params, checkpoint.optimizer):
        arrays |= {f"{part}.{key}": array for key, array in group.items()}
    return arrays


def _groups(params, optimizer):
    return ("params", params), ("mean", optimizer.mean), ("square", optimizer.square)


def _read(file):
    """Return what `_arrays` made a file of, as a Checkpoint: the inverse of `save`, but for its checks."""
    with np.load(file, allow_pickle=False) as archive:
        arrays = dict(archive)
    header = json.loads(str(arrays.pop("header")))
    if header["format"] != FORMAT:
        raise ValueError(f"format must be {FORMAT!r}, got {header['format']!r}")
    groups = {"params": {}, "mean": {}, "square": {}}
    for name, array in arrays.items():
        part, key = name.split(".", maxsplit=1)
        groups[part][key] = array
    return Checkpoint(
        config=ModelConfig(**header["config"]),
        vocabulary=tuple(header["vocabulary"]),
        params=groups["params"],
        optimizer=optim.AdamWState(header["step"], groups["mean"], groups["square"]),
        rng=header["rng"],
    )


def _check(checkpoint):
    """Raise ValueError or TypeError unless the parts of the checkpoint fit together."""
    check_params(checkpoint.params, checkpoint.config)
    optim.check_state(checkpoint.optimizer, checkpoint.params)
    V = checkpoint.config.vocab_size
    if len(checkpoint.vocabulary) != V:
        raise ValueError(f"vocabulary must hold V = {V} characters, got {len(checkpoint.vocabulary)}")
    np.random.PCG64(0).state = checkpoint.rng  # refuses the state of another kind of generator
