"""A point of a training run that can be returned to, in memory and in a file.

The file is an `.npz` archive: `header`, a text in JSON, and the arrays of the parameters and of AdamW. It is
read without pickle, which would let whoever wrote the file run code here. The header is read first, and no
file takes up more memory than it has bytes.
"""

import contextlib
import errno
import json
import os
import shutil
import tempfile
import zipfile
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from labs.llm import arguments
from labs.llm.parameters import ModelConfig, require_keys, require_params
from labs.llm.training import data, optim

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

FORMAT = "labs.llm checkpoint 1"

#: The end of the name of a folder in which a save is at work, or was at work when it was killed.
UNFINISHED = ".unfinished"

#: The beginnings of the names of the arrays in the file.
PARTS = ("params", "mean", "square")


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
    the way, a crash included, `path` holds the old checkpoint or the new one. The next save
    removes what a killed one left beside it (on Windows you have to remove that by hand).

    Args:
        path: of the file; its folder exists.
        checkpoint: the Checkpoint.

    Raises: ValueError or TypeError if the parts of the checkpoint do not fit together; OSError if the file
        cannot be written. Either way the old file stays.
    """
    require_checkpoint(checkpoint)
    path = _as_path(path)
    with _unfinished(path) as folder:
        unfinished = folder / path.name
        with unfinished.open("wb") as file:
            np.savez(file, **_arrays(checkpoint))
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)


def require_writable(path):
    """Raise TypeError unless `path` is a path, and OSError unless `save` could write there now."""
    with _unfinished(_as_path(path)):
        pass


@contextlib.contextmanager
def _unfinished(path):
    """Provide a folder beside `path` and remove it afterwards; first remove what killed saves left there."""
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "path must be a file, not a folder", str(path))
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(_announced(path))
            name = stack.enter_context(tempfile.TemporaryDirectory(UNFINISHED, f".{path.name}-", path.parent))
        except OSError as error:
            message = f"path must lie in a folder that exists and can be written to: {error.strerror}"
            raise OSError(error.errno, message, str(path)) from error
        yield Path(name)


@contextlib.contextmanager
def _announced(path):
    """Tell other processes that a save is at work beside `path`; if it is the only one, clear up first.

    Each save holds a shared lock on the folder, which the system releases even if the save is killed. A
    save that gets the lock for itself is therefore alone, and whatever is unfinished is left over.
    """
    if fcntl is None:
        yield
        return
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # another save is at work, or the file system has no locks
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for left_over in path.parent.iterdir():
                if left_over.name.startswith(f".{path.name}-") and left_over.name.endswith(UNFINISHED):
                    shutil.rmtree(left_over, ignore_errors=True)
        with contextlib.suppress(OSError):
            fcntl.flock(folder, fcntl.LOCK_SH)
        yield
    finally:
        os.close(folder)


def load(path):
    """Read a checkpoint from a file that `save` ffn_out.

    Args:
        path: of the file.

    Returns: the Checkpoint, of fresh arrays.
    Raises: ValueError if the file is truncated, damaged, not a checkpoint, or its parts do not fit together;
        OSError (such as FileNotFoundError) if it cannot be opened.
    """
    path = _as_path(path)
    with path.open("rb") as file:
        try:
            checkpoint = _read(file)
            require_checkpoint(checkpoint)
        except Exception as error:  # whatever zipfile, NumPy and JSON find wrong with a foreign file
            raise ValueError(
                f"path must be a checkpoint written by save, got {arguments.shown(str(path))}, and "
                f"reading it failed with {type(error).__name__}: {_brief(error)}. "
                "Go back to an earlier checkpoint, or start afresh"
            ) from error
    return checkpoint


def _as_path(path):
    name = os.fspath(path) if isinstance(path, (str, os.PathLike)) else None
    if not isinstance(name, str):
        raise TypeError(f"path must be a str or a pathlib.Path, got {type(path).__name__}: name a file")
    if "\0" in name:
        raise ValueError(
            f"path must not contain a null character, got {arguments.shown(name)}: no file name has one"
        )
    return Path(name)


def _brief(error):
    text = " ".join(str(error).split())
    return text if len(text) <= 400 else f"{text[:400]}..."


def _arrays(checkpoint):
    """Return the checkpoint as one flat dict of arrays."""
    header = {
        "format": FORMAT,
        "config": asdict(checkpoint.config),
        "vocabulary": checkpoint.vocabulary,
        "step": int(checkpoint.step),
        "rng": checkpoint.rng,
    }
    arrays = {"header": np.array(json.dumps(header))}
    groups = (checkpoint.params, checkpoint.optimizer.mean, checkpoint.optimizer.square)
    for part, group in zip(PARTS, groups, strict=True):
        arrays |= {f"{part}.{key}": array for key, array in group.items()}
    return arrays


def _read(file):
    """Return the Checkpoint that a file holds: the inverse of `save`, except for its checks."""
    with zipfile.ZipFile(file) as archive:
        members = _members(archive, file.seek(0, os.SEEK_END))
        header = json.loads(str(_array(archive, members.pop("header"))))
        if header["format"] != FORMAT:
            raise ValueError(f"format must be {FORMAT!r}, got {arguments.shown(header['format'])}")
        config = ModelConfig(**header["config"])
        groups = {part: {} for part in PARTS}
        for name, member in members.items():
            part, key = name.split(".", maxsplit=1)
            groups[part][key] = member
        for part, group in groups.items():
            require_keys(part, group, config)
            groups[part] = {key: _array(archive, member) for key, member in group.items()}
    return Checkpoint(
        config=config,
        vocabulary=tuple(header["vocabulary"]),
        params=groups["params"],
        optimizer=optim.AdamWState(header["step"], groups["mean"], groups["square"]),
        rng=header["rng"],
    )


def _members(archive, size):
    """Return the members of an archive of `size` bytes by name; refuse an archive that grows when it is read.

    Compressed members make it grow, and so do members that overlap.
    """
    members = {member.filename.removesuffix(".npy"): member for member in archive.infolist()}
    if len(members) < len(archive.infolist()):
        raise ValueError("the archive must have different names for its arrays, got the same name twice")
    total = sum(member.file_size for member in members.values())
    if total > size or any(member.compress_type != zipfile.ZIP_STORED for member in members.values()):
        raise ValueError(
            f"the archive must hold its arrays uncompressed within its {size} bytes, got {total} bytes"
        )
    return members


def _array(archive, member):
    with archive.open(member) as stream:
        return np.lib.format.read_array(stream, allow_pickle=False)


def require_checkpoint(checkpoint):
    """Raise ValueError or TypeError unless the parts fit together and all numbers are finite."""
    arguments.require_type("checkpoint", checkpoint, Checkpoint, "start makes one, and load reads one")
    require_params(checkpoint.params, checkpoint.config)
    optim.require_state(checkpoint.optimizer, checkpoint.params)
    data.require_vocabulary(checkpoint.vocabulary, checkpoint.config.vocab_size)
    generator(checkpoint.rng)
    groups = (checkpoint.params, checkpoint.optimizer.mean, checkpoint.optimizer.square)
    for part, group in zip(PARTS, groups, strict=True):
        for key, array in group.items():
            if not np.isfinite(array).all() or (part == "square" and array.min() < 0):
                raise ValueError(
                    f"{part} of {key} must hold finite numbers{', none below zero' * (part == 'square')}, "
                    f"got some that are not: go back to an earlier checkpoint"
                )


def generator(state):
    """Return the np.random.Generator that draws the batches, from the state of its PCG64.

    Raises: ValueError if it is not such a state.
    """
    bits = np.random.PCG64(0)
    try:
        bits.state = state
    except Exception as error:  # NumPy raises many kinds of errors
        raise ValueError(
            f"rng must be the state of a PCG64 generator, got {arguments.shown(state)}: "
            "take rng.bit_generator.state"
        ) from error
    return np.random.Generator(bits)
