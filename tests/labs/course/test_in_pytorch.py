"""The lines in PyTorch that chapters show were run, and give the numbers of labs.llm."""

import ast
import hashlib

import numpy as np
import pytest

from labs.course.text import IN_PYTORCH
from labs.llm.mutants import torch_jax
from labs.llm.mutants.planting import ORIGINAL
from labs.llm.mutants.table import EXAMPLES
from tests.labs.course.lines import LINES

MAKE_AGAIN = "run tests/labs/llm/mutants/fixtures/make.py, as it says"


def test_the_stored_results_are_those_of_the_file():
    assert torch_jax.lines_hash() == hashlib.sha256(IN_PYTORCH.read_bytes()).hexdigest(), MAKE_AGAIN


def test_every_function_was_run():
    functions = [
        n.name for n in ast.parse(IN_PYTORCH.read_text("utf8")).body if isinstance(n, ast.FunctionDef)
    ]
    assert functions == list(LINES)


@pytest.mark.parametrize("example", EXAMPLES)
@pytest.mark.parametrize("name", LINES)
def test_pytorch_and_the_library_agree(name, example):
    found = torch_jax.lines(example, name)
    expected = LINES[name].expected(EXAMPLES[example](ORIGINAL))
    for ours, theirs in zip(expected, found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-15)


def test_results_that_are_not_stored_are_refused():
    with pytest.raises(ValueError, match="name must be a function whose results are stored, got 'mamba'"):
        torch_jax.lines("tiny", "mamba")
