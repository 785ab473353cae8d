"""What the tests of the checks share."""

import numpy as np
import pytest

from labs.llm.mutants.planting import ORIGINAL
from labs.llm.mutants.table import distinct_example, logits_of


@pytest.fixture
def rng():
    return np.random.default_rng(11)


@pytest.fixture
def example():
    """The example of pairwise different sizes."""
    return distinct_example(ORIGINAL)


@pytest.fixture
def logits(example):
    return logits_of(ORIGINAL, example)
