"""The sizes of a model and its parameters: keys, shapes, the first draw, and what is refused."""

import dataclasses
import math

import numpy as np
import pytest

from labs.llm import model
from labs.llm.parameters import ModelConfig, block_weights, init_params, param_shapes

#: float64 in the byte order that this machine does not have.
FOREIGN = np.dtype(np.float64).newbyteorder()

# ModelConfig


def test_config_defaults():
    config = ModelConfig(vocab_size=28)
    assert dataclasses.astuple(config) == (28, 32, 4, 1, 64, 10000.0, 1e-5)
    assert config.d_head == 8


def test_config_needs_a_vocabulary_and_cannot_change():
    with pytest.raises(TypeError, match="vocab_size"):
        ModelConfig()
    with pytest.raises(dataclasses.FrozenInstanceError):
        ModelConfig(28).d_model = 64


@pytest.mark.parametrize("name", ["vocab_size", "d_model", "n_heads", "n_layers", "d_ff"])
@pytest.mark.parametrize(
    ("value", "error"), [(0, ValueError), (-4, ValueError), (4.0, TypeError), (True, TypeError)]
)
def test_config_refuses_sizes(name, value, error):
    with pytest.raises(error, match=f"{name} must be .* got {value}"):
        ModelConfig(**{"vocab_size": 28, name: value})


@pytest.mark.parametrize(
    ("whole", "real"), [(np.int64, np.float64), (np.uint8, np.float32), (np.array, np.array)]
)
def test_config_takes_numbers_of_numpy_and_holds_those_of_python(whole, real):
    config = ModelConfig(
        whole(28), d_model=whole(8), n_heads=whole(2), rope_base=real(0.5), norm_eps=real(0.25)
    )
    assert config == ModelConfig(28, d_model=8, n_heads=2, rope_base=0.5, norm_eps=0.25)
    assert {type(value) for value in dataclasses.astuple(config)} == {int, float}


def test_float32_stays_float32_whatever_the_settings_are(example):
    _, _, ids, targets = example
    config = ModelConfig(
        11, d_model=24, n_layers=2, d_ff=20, rope_base=np.float64(300), norm_eps=np.float64(1e-3)
    )
    params = init_params(config, np.int64(0), np.float32)
    loss, grads = model.loss_and_grads(params, ids, targets, config)
    assert {array.dtype for array in [loss, *grads.values()]} == {np.dtype(np.float32)}


@pytest.mark.parametrize("name", ["rope_base", "norm_eps"])
@pytest.mark.parametrize(
    ("value", "error"),
    [(0, ValueError), (-1.0, ValueError), (math.nan, ValueError), (math.inf, ValueError), (True, TypeError)],
)
def test_config_refuses_base_and_eps(name, value, error):
    with pytest.raises(error, match=f"{name} must be .*got {value}"):
        ModelConfig(28, **{name: value})


def test_config_refuses_heads_that_do_not_share_the_width():
    with pytest.raises(ValueError, match="d_model must be divisible by n_heads, got D = 32 and H = 5"):
        ModelConfig(28, n_heads=5)
    with pytest.raises(ValueError, match="must be even, got dh = 3"):
        ModelConfig(28, d_model=12, n_heads=4)


# Parameters


def test_parameters_by_name_and_shape():
    config = ModelConfig(vocab_size=11, d_model=24, n_heads=4, n_layers=2, d_ff=20)
    block_shapes = {
        "attn_norm": (24,), "wq": (24, 24), "wk": (24, 24), "wv": (24, 24), "wo": (24, 24),
        "ffn_norm": (24,), "w1": (24, 20), "w3": (24, 20), "w2": (20, 24),
    }  # fmt: skip
    expected = {"embedding": (11, 24)}
    expected |= {f"blocks.0.{name}": shape for name, shape in block_shapes.items()}
    expected |= {f"blocks.1.{name}": shape for name, shape in block_shapes.items()}
    expected |= {"final_norm": (24,), "unembedding": (24, 11)}
    assert list(param_shapes(config).items()) == list(expected.items())
    params = init_params(config, 0)
    assert list(params) == list(expected)
    assert {key: array.shape for key, array in params.items()} == expected


@pytest.mark.parametrize(("V", "d", "f", "L"), [(28, 32, 64, 1), (11, 24, 20, 3)])
def test_parameters_are_as_many_as_the_formula_says(V, d, f, L):
    params = init_params(ModelConfig(V, d_model=d, n_layers=L, d_ff=f), 0)
    assert (
        sum(array.size for array in params.values()) == 2 * V * d + L * (4 * d**2 + 3 * d * f) + 2 * L * d + d
    )


def test_one_seed_gives_one_draw_in_both_dtypes():
    config = ModelConfig(11)
    params, again = init_params(config, 3), init_params(config, np.random.default_rng(3))
    narrow = init_params(config, 3, np.float32)
    for key, array in params.items():
        assert (array == again[key]).all()
        assert (array.astype(np.float32) == narrow[key]).all()
        assert narrow[key].dtype == np.float32
    assert (init_params(config, 4)["unembedding"] != params["unembedding"]).any()


def test_no_two_parameters_share_memory():
    arrays = list(init_params(ModelConfig(11, n_layers=3), 0).values())
    for i, array in enumerate(arrays):
        assert not any(np.shares_memory(array, other) for other in arrays[:i])


def test_initial_scales():
    config = ModelConfig(500, d_model=128, n_heads=2, n_layers=3, d_ff=512)
    params = init_params(config, 0)
    deviations = {
        "embedding": 1,
        "blocks.1.wq": 1 / 128**0.5,
        "blocks.1.w3": 1 / 128**0.5,
        "blocks.1.wo": 1 / (6 * 128) ** 0.5,
        "blocks.2.w2": 1 / (6 * 512) ** 0.5,
        "unembedding": 0.1 / 128**0.5,
    }
    for key, deviation in deviations.items():
        assert params[key].std() == pytest.approx(deviation, rel=0.03), key
    assert (params["blocks.0.ffn_norm"] == 1).all()


@pytest.mark.parametrize("dtype", [np.float16, np.int64, complex])
def test_init_params_refuses_other_dtypes(dtype):
    with pytest.raises(TypeError, match=r"dtype must be np\.float64 or np\.float32, got"):
        init_params(ModelConfig(11), 0, dtype)


def test_init_params_refuses_to_draw_without_a_seed():
    with pytest.raises(TypeError, match=r"seed must be an int or a np\.random\.Generator, got None"):
        init_params(ModelConfig(11), None)


def test_parameters_that_do_not_fit_are_named(example):
    config, params, ids, _ = example
    rest = {key: array for key, array in params.items() if key != "blocks.1.wk"}
    cases = [
        (rest, ValueError, r"missing \['blocks.1.wk'\] and extra \[\]"),
        ({**params, "bias": np.ones(3)}, ValueError, r"missing \[\] and extra \['bias'\]"),
        (
            {**params, "blocks.1.w1": np.ones((20, 24))},
            ValueError,
            r"blocks.1.w1 must have shape \(D, F\) = \(24, 20\)",
        ),
        (
            {**params, "final_norm": np.ones((24, 1))},
            ValueError,
            r"final_norm must have shape \(D\) = \(24,\)",
        ),
        (
            {**params, "embedding": np.ones((12, 24))},
            ValueError,
            r"embedding must have shape \(V, D\) = \(11, 24\)",
        ),
        ({**params, 3: 1, None: 2}, ValueError, r"missing \[\] and extra \[3, None\]"),
        (
            {**params, "final_norm": np.ones(24, int)},
            TypeError,
            "got int64 in final_norm beside float64 in embedding",
        ),
        (
            {**params, "final_norm": np.ones(24, np.float32)},
            TypeError,
            "got float32 in final_norm beside float64 in embedding",
        ),
        (
            {**params, "final_norm": [1.0] * 24},
            TypeError,
            "must be arrays without a mask, got list in final_norm: convert",
        ),
        (
            {**params, "embedding": [[1.0], [2.0, 3.0]]},
            TypeError,
            "must be arrays without a mask, got list in embedding",
        ),
        ({key: array.astype(int) for key, array in params.items()}, TypeError, "one floating-point dtype"),
        (
            {**params, "final_norm": np.ma.masked_equal(params["final_norm"], 1.0)},
            TypeError,
            "must be arrays without a mask, got MaskedArray in final_norm",
        ),
        ({key: array.astype(FOREIGN) for key, array in params.items()}, TypeError, "foreign byte order"),
        (
            {key: array.astype(np.float16) for key, array in params.items()},
            TypeError,
            "got float16 in embedding",
        ),
        (list(params.values()), TypeError, "params must be a dict, got list"),
        (None, TypeError, "params must be a dict, got NoneType"),
    ]
    for wrong, error, words in cases:
        with pytest.raises(error, match=words):
            model.forward(wrong, ids, config)


def test_a_layer_that_params_do_not_have_is_named(example):
    _, params, _, _ = example
    assert block_weights(params, np.int64(1)).wq is params["blocks.1.wq"]
    for wrong, error, words in (
        (9, ValueError, r"l must be a layer of params, got 9, but params have no 'blocks\.9\.attn_norm'"),
        (-1, ValueError, "l must be at least 0, got -1"),
        (1.0, TypeError, "l must be an int"),
    ):
        with pytest.raises(error, match=words):
            block_weights(params, wrong)


def test_a_config_of_a_million_layers_is_refused_without_naming_them(example):
    config, params, ids, _ = example
    with pytest.raises(ValueError, match=f"got {len(params)} keys for L = {10**12} layers"):
        model.forward(params, ids, dataclasses.replace(config, n_layers=10**12))


def test_the_model_offers_what_is_needed_to_make_one():
    assert (model.ModelConfig, model.init_params) == (ModelConfig, init_params)
