"""What the tests of the model share: examples."""

from typing import NamedTuple

import numpy as np
import pytest

from labs.llm.model import ModelConfig, init_params


class Example(NamedTuple):
    """A model and a batch for it."""

    config: ModelConfig
    params: dict[str, np.ndarray]
    ids: np.ndarray  # (B, T)
    targets: np.ndarray  # (B, T)


def make_example(config, B, T, seed, dtype=np.float64):
    """Draw parameters with gains that are not one, and texts (T >= 3), the first with a repeated token.

    It has another token too: where every text repeats one token, all that attention can read is equal, and
    the gradients of wq and wk are nothing but rounding.
    """
    rng = np.random.default_rng(seed)
    params = init_params(config, rng, dtype)
    for key, array in params.items():
        if key.endswith("norm"):
            params[key] = rng.uniform(0.7, 1.3, array.shape).astype(dtype)
    ids, targets = rng.integers(0, config.vocab_size, (2, B, T))
    ids[0, 1:3] = ids[0, 0], (ids[0, 0] + 1) % config.vocab_size
    return Example(config, params, ids, targets)


#: The sizes of the course's example: B = H = 2 hides a swap of batch and head.
COURSE = ModelConfig(vocab_size=9, d_model=8, n_heads=2, n_layers=1, d_ff=16), 2, 5
#: Sizes that are pairwise different, so that no swap of axes can pass.
DISTINCT = ModelConfig(vocab_size=11, d_model=24, n_heads=4, n_layers=2, d_ff=20), 3, 7


@pytest.fixture
def example():
    """An example of pairwise different sizes."""
    return make_example(*DISTINCT, seed=5)
