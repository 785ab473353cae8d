"""The stored numbers of PyTorch and JAX are whole, of today's examples, and not copies of each other."""

import numpy as np
import pytest

from labs.llm.checks import agreement
from labs.llm.mutants import table, torch_jax
from labs.llm.mutants.planting import ORIGINAL


def named(values):
    """Everything a framework computed, in one dict."""
    return {"logits": values.logits, "loss": values.loss, **values.grads}


def test_the_examples_are_those_of_the_mutants():
    assert tuple(table.EXAMPLES) == torch_jax.EXAMPLES


@pytest.mark.parametrize("name", torch_jax.EXAMPLES)
def test_the_inputs_are_those_of_today(name):
    stored, example = torch_jax.inputs(name), table.EXAMPLES[name](ORIGINAL)
    assert stored.config == example.config
    np.testing.assert_array_equal(stored.ids, example.ids)
    np.testing.assert_array_equal(stored.targets, example.targets)
    assert stored.params.keys() == example.params.keys()
    for key, array in stored.params.items():
        np.testing.assert_array_equal(array, example.params[key], err_msg=key)


@pytest.mark.parametrize("framework", torch_jax.VERSIONS)
@pytest.mark.parametrize("name", torch_jax.EXAMPLES)
def test_the_values_are_whole(name, framework):
    given, values = torch_jax.inputs(name), torch_jax.values(name, framework)
    assert values.logits.shape == (*given.ids.shape, given.config.vocab_size)
    assert type(values.loss) is float
    assert {key: array.shape for key, array in values.grads.items()} == {
        key: array.shape for key, array in given.params.items()
    }
    arrays = [values.logits, *values.grads.values()]
    assert all(array.dtype == np.float64 and np.isfinite(array).all() for array in arrays)


@pytest.mark.parametrize("name", torch_jax.EXAMPLES)
def test_the_frameworks_agree_and_round_differently(name):
    torch, jax = (torch_jax.values(name, framework) for framework in ("torch", "jax"))
    assert agreement(named(torch), named(jax))
    same = [key for key, array in torch.grads.items() if np.array_equal(array, jax.grads[key])]
    assert not same, "one is a copy of the other"


def test_the_examples_differ():
    tiny, distinct = (torch_jax.values(name, "jax") for name in ("tiny", "distinct"))
    assert tiny.loss != distinct.loss


def test_every_call_returns_fresh_arrays():
    first = torch_jax.values("tiny", "torch")
    before = first.logits.copy()
    first.logits[:] = 0
    np.testing.assert_array_equal(torch_jax.values("tiny", "torch").logits, before)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: torch_jax.values("large", "torch"), "example must be one of tiny, distinct, got 'large'"),
        (lambda: torch_jax.inputs(np.array(["tiny", "distinct"])), "example must be one of tiny, distinct"),
        (lambda: torch_jax.inputs("torch"), "example must be one of tiny, distinct, got 'torch'"),
        (lambda: torch_jax.values("tiny", "TensorFlow"), "framework must be one of torch, jax, got 'Tens"),
    ],
)
def test_unknown_names_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
