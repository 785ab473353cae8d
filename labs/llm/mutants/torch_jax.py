"""The two examples of `table.py` as PyTorch and JAX compute them: numbers from elsewhere to compare with.

Neither is a dependency of this project. Their numbers lie in `torch_jax.npz`. The script that wrote it,
`tests/labs/llm/mutants/fixtures/make.py`, has two models that share nothing with this package but the inputs.
All floating-point numbers are float64.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from labs.llm import arguments
from labs.llm.model import ModelConfig

PATH = Path(__file__).with_name("torch_jax.npz")

#: "tiny" is the course's example, "distinct" has sizes that are pairwise different.
EXAMPLES = ("tiny", "distinct")

#: The frameworks by name, with the versions that computed the numbers.
VERSIONS = {"torch": "2.13.0", "jax": "0.10.2"}


class Inputs(NamedTuple):
    """What both frameworks were given."""

    config: ModelConfig
    params: dict[str, np.ndarray]
    ids: np.ndarray  # (B, T)
    targets: np.ndarray  # (B, T)


class Values(NamedTuple):
    """What a framework computed."""

    logits: np.ndarray  # (B, T, V)
    loss: float  # in nats
    grads: dict[str, np.ndarray]  # with the keys and shapes of the params


def inputs(example):
    """Return the Inputs of an example, as they were when the frameworks computed; fresh arrays at every call.

    Args:
        example: one of EXAMPLES.

    Raises: ValueError for another example.
    """
    _require_one_of("example", example, EXAMPLES)
    config = {field: value.item() for field, value in _stored(f"{example}/config/").items()}
    arrays = _stored(f"{example}/")
    return Inputs(ModelConfig(**config), _stored(f"{example}/params/"), arrays["ids"], arrays["targets"])


def values(example, framework):
    """Return the Values that a framework computed for an example; fresh arrays at every call.

    Args:
        example: one of EXAMPLES.
        framework: one of VERSIONS.

    Raises: ValueError for another example or framework.
    """
    _require_one_of("example", example, EXAMPLES)
    _require_one_of("framework", framework, tuple(VERSIONS))
    prefix = f"{example}/{framework}/"
    arrays = _stored(prefix)
    return Values(arrays["logits"], arrays["loss"].item(), _stored(f"{prefix}grads/"))


def lines(example, name):
    """Return what a function of `labs/course/in_pytorch.py` returned for an example: a list of fresh arrays.

    Args:
        example: one of EXAMPLES.
        name: of the function.

    Raises: ValueError for another example, or if nothing is stored under the name.
    """
    _require_one_of("example", example, EXAMPLES)
    found = _stored(f"{example}/lines/{name}/")
    if not found:
        raise ValueError(f"name must be a function whose results are stored, got {arguments.shown(name)}")
    return [found[str(number)] for number in range(len(found))]


def lines_hash():
    """Return the SHA-256 of `labs/course/in_pytorch.py` as it was when the results were stored."""
    return str(_stored("lines/")["sha256"])


def _stored(prefix):
    """Return the arrays whose path in the file begins with the prefix, by the rest of the path."""
    with np.load(PATH, allow_pickle=False) as file:
        return {path.removeprefix(prefix): file[path] for path in file.files if path.startswith(prefix)}


def _require_one_of(name, value, known):
    if not isinstance(value, str) or value not in known:
        raise ValueError(
            f"{name} must be one of {', '.join(known)}, got {arguments.shown(value)}: no other is stored"
        )
