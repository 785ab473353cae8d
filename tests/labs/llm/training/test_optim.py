"""AdamW against hand computations and PyTorch, clipping, and the schedule."""

import math

import numpy as np
import pytest

from labs.llm.training.optim import (
    AdamWConfig,
    AdamWState,
    adamw,
    adamw_init,
    clip_by_global_norm,
    global_norm,
    warmup_cosine,
)

CONFIG = AdamWConfig(beta1=0.8, beta2=0.95, eps=1e-6, weight_decay=0.1)


def small_params(dtype=np.float64):
    return {
        "w": np.array([[0.5, -1.0], [2.0, 0.25]], dtype),
        "gain": np.array([1.1, 0.9], dtype),
    }


def ones_like(params, value=1.0):
    return {key: np.full_like(array, value) for key, array in params.items()}


# AdamW


def test_two_steps_by_hand():
    params = {"x": np.array([1.0])}
    config = AdamWConfig(beta1=0.5, beta2=0.75, eps=1.0, weight_decay=0.0)
    # grad 2: mean 1, square 1; both divisions give 2 and 4; update 2 / (2 + 1)
    params, state = adamw(params, {"x": np.array([2.0])}, adamw_init(params), 0.3, config)
    assert params["x"] == pytest.approx([1 - 0.3 * 2 / 3], rel=1e-14)
    # grad -1: mean 1/2 - 1/2 = 0, so nothing moves; square 3/4 + 1/4 = 1
    params, state = adamw(params, {"x": np.array([-1.0])}, state, 0.3, config)
    assert params["x"] == pytest.approx([0.8], rel=1e-14)
    assert (state.step, state.mean["x"], state.square["x"]) == (2, 0, 1)


#: Three steps of torch.optim.AdamW (PyTorch 2.13, float64) on the loss of `torch_grads`. Made by:
#:   w, gain = (torch.tensor(a, dtype=torch.float64, requires_grad=True) for a in small_params().values())
#:   groups = [{"params": [w], "weight_decay": 0.1}, {"params": [gain], "weight_decay": 0.0}]
#:   optimizer = torch.optim.AdamW(groups, betas=(0.8, 0.95), eps=1e-6)
#:   for t, lr in enumerate((0.1, 0.05, 0.02), start=1):
#:       for group in optimizer.param_groups: group["lr"] = lr
#:       optimizer.zero_grad(); ((w**3).sum() / t + (w @ gain).prod()).backward(); optimizer.step()
TORCH_STEPS = [
    {
        "w": [[0.3950000292611473, -1.089999980704297], [1.8800000086095559, 0.3474992156924259]],
        "gain": [1.0000001951215707, 0.9999999601990208],
    },
    {
        "w": [[0.3443668321126269, -1.1336028946480716], [1.8264902800065255, 0.3909481083324674]],
        "gain": [1.000988393511653, 1.0501063677145435],
    },
    {
        "w": [[0.32438655984086673, -1.1507055367718126], [1.8073575090245173, 0.40909973851276943]],
        "gain": [1.0118376351549483, 1.0702276617509463],
    },
]


def torch_grads(params, t):
    """The gradients of sum(w**3) / t + (w @ gain)[0] * (w @ gain)[1]."""
    w, gain = params["w"], params["gain"]
    dy = (w @ gain)[::-1]
    return {"w": 3 * w**2 / t + np.outer(dy, gain), "gain": w.T @ dy}


def test_three_steps_of_pytorch():
    params = small_params()
    state = adamw_init(params)
    for t, (learning_rate, expected) in enumerate(zip((0.1, 0.05, 0.02), TORCH_STEPS, strict=True), start=1):
        params, state = adamw(params, torch_grads(params, t), state, learning_rate, CONFIG)
        for key, array in params.items():
            np.testing.assert_allclose(array, expected[key], rtol=1e-13)


def test_decay_acts_without_gradient_on_matrices_only():
    params = small_params()
    moved, _ = adamw(params, ones_like(params, 0.0), adamw_init(params), 0.5, CONFIG)
    np.testing.assert_allclose(moved["w"], params["w"] * (1 - 0.5 * 0.1), rtol=1e-15)
    assert np.array_equal(moved["gain"], params["gain"])


def test_the_caller_chooses_what_decays():
    params = small_params()
    config = AdamWConfig(weight_decay=0.1, decays=lambda key, _: key == "gain")
    moved, _ = adamw(params, ones_like(params, 0.0), adamw_init(params), 0.5, config)
    assert np.array_equal(moved["w"], params["w"])
    np.testing.assert_allclose(moved["gain"], params["gain"] * 0.95, rtol=1e-15)


def test_decay_is_decoupled_from_the_scale_of_the_gradient():
    """Gradients a thousand times as large change neither the step nor the decay; L2 in the gradient would."""
    params = small_params()
    config = AdamWConfig(eps=1e-30, weight_decay=0.1)
    steps = [
        adamw(params, ones_like(params, scale), adamw_init(params), 0.1, config)[0] for scale in (1.0, 1000.0)
    ]
    np.testing.assert_allclose(steps[0]["w"], steps[1]["w"], rtol=1e-14)
    np.testing.assert_allclose(steps[0]["w"], params["w"] * 0.99 - 0.1, rtol=1e-14)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_adamw_keeps_the_dtype_and_changes_nothing_passed_in(dtype):
    params = small_params(dtype)
    grads, state = ones_like(params), adamw_init(params)
    for arrays in (params, grads, state.mean, state.square):
        for array in arrays.values():
            array.setflags(write=False)
    moved, new_state = adamw(params, grads, state, 0.1, CONFIG)
    moved, new_state = adamw(moved, grads, new_state, 0.1, CONFIG)
    assert {array.dtype for array in moved.values()} == {np.dtype(dtype)}
    assert {array.dtype for array in [*new_state.mean.values(), *new_state.square.values()]} == {
        np.dtype(dtype)
    }
    assert (state.step, new_state.step) == (0, 2)
    assert not any(np.shares_memory(moved[key], params[key]) for key in params)


CHANGES = {
    "missing": (lambda arrays: arrays.pop("w"), r"must fit params .* missing \['w'\]"),
    "extra": (lambda arrays: arrays.update(bias=np.ones(2)), r"must fit params .* extra \['bias'\]"),
    "shape": (lambda arrays: arrays.update(w=np.ones((2, 1))), r"of 'w' must have .* got \(2, 1\)"),
    "dtype": (lambda arrays: arrays.update(w=np.ones((2, 2), np.float32)), "of 'w' must have .* float32"),
}


@pytest.mark.parametrize(("change", "message"), CHANGES.values(), ids=CHANGES.keys())
@pytest.mark.parametrize("name", ["grads", "state.mean", "state.square"])
def test_adamw_refuses_what_does_not_fit_the_parameters(name, change, message):
    params = small_params()
    grads, state = ones_like(params), adamw_init(params)
    change({"grads": grads, "state.mean": state.mean, "state.square": state.square}[name])
    with pytest.raises(ValueError, match=f"{name} {message}"):
        adamw(params, grads, state, 0.1, CONFIG)


@pytest.mark.parametrize(("step", "error"), [(-1, ValueError), (1.0, TypeError), (True, TypeError)])
def test_adamw_refuses_a_step_that_counts_nothing(step, error):
    params = small_params()
    with pytest.raises(error, match="step must be"):
        adamw(params, ones_like(params), adamw_init(params)._replace(step=step), 0.1, CONFIG)


@pytest.mark.parametrize("rate", [0, -0.1, math.nan, math.inf])
def test_adamw_refuses_a_learning_rate(rate):
    params = small_params()
    with pytest.raises(ValueError, match="learning_rate must be positive"):
        adamw(params, ones_like(params), adamw_init(params), rate, CONFIG)


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("beta1", 1.0, ValueError),
        ("beta2", -0.1, ValueError),
        ("beta2", math.nan, ValueError),
        ("eps", 0.0, ValueError),
        ("weight_decay", -0.1, ValueError),
        ("weight_decay", math.inf, ValueError),
        ("weight_decay", True, TypeError),
        ("decays", ["w"], TypeError),
    ],
)
def test_config_refuses(name, value, error):
    with pytest.raises(error, match=f"{name} must be"):
        AdamWConfig(**{name: value})


@pytest.mark.parametrize("dtype", [int, np.float16])
def test_a_state_is_made_for_float32_and_float64_only(dtype):
    with pytest.raises(
        TypeError, match=r"params\['w'\] must hold floating-point numbers, float32 or float64"
    ):
        adamw_init({"w": np.ones((2, 2), dtype)})


def test_adamw_refuses_half_precision():
    params = {"w": np.ones((2, 2), np.float16)}
    state = AdamWState(0, params, params)
    with pytest.raises(TypeError, match=r"params\['w'\] must hold .* got dtype float16"):
        adamw(params, params, state, 0.1, CONFIG)


@pytest.mark.parametrize("real", [np.float64, np.float32, np.array])
def test_float32_parameters_stay_float32_whatever_the_settings_are(real):
    config = AdamWConfig(beta1=real(0.5), beta2=real(0.75), eps=real(0.125), weight_decay=real(0.25))
    assert config == AdamWConfig(beta1=0.5, beta2=0.75, eps=0.125, weight_decay=0.25)
    params = small_params(np.float32)
    grads, _ = clip_by_global_norm(ones_like(params), real(0.5))
    moved, state = adamw(params, grads, adamw_init(params), real(0.5), config)
    groups = (grads, moved, state.mean, state.square)
    assert {array.dtype for group in groups for array in group.values()} == {np.dtype(np.float32)}
    expected, _ = adamw(params, grads, adamw_init(params), 0.5, config)
    assert all(np.array_equal(moved[key], expected[key]) for key in params)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"config": {}}, "config must be of type AdamWConfig, got dict"),
        ({"state": None}, "state must be of type AdamWState, got NoneType"),
        ({"grads": None}, "grads must be a dict, got NoneType"),
        ({"params": [np.ones(2)]}, "params must be a dict, got list"),
        ({"grads": {"w": [[1.0]], "gain": [1.0]}}, r"grads\['w'\] must be a NumPy array, got list"),
    ],
)
def test_adamw_refuses_arguments_of_another_kind(change, words):
    params = small_params()
    arguments = {
        "grads": ones_like(params),
        "state": adamw_init(params),
        "learning_rate": 0.1,
        "config": CONFIG,
    }
    with pytest.raises(TypeError, match=words):
        adamw(**{"params": params} | arguments | change)


# Clipping


def test_norm_and_clipping_by_hand():
    grads = {"a": np.array([[3.0, 0.0]]), "b": np.array([4.0])}
    assert global_norm(grads) == 5
    clipped, norm = clip_by_global_norm(grads, 2.5)
    assert norm == 5
    assert np.array_equal(clipped["a"], [[1.5, 0.0]])
    assert np.array_equal(clipped["b"], [2.0])
    assert np.array_equal(grads["b"], [4.0])


def test_short_gradients_stay():
    grads = {"a": np.array([[3.0, 0.0]]), "b": np.array([4.0])}
    clipped, norm = clip_by_global_norm(grads, 5)
    assert norm == 5
    assert all(clipped[key] is grads[key] for key in grads)


def test_the_norm_of_large_float32_gradients_is_finite():
    grads = {"a": np.full((2, 2), 1e30, np.float32).T[::2]}
    assert global_norm(grads) == pytest.approx(math.sqrt(2) * 1e30, rel=1e-6)
    clipped, _ = clip_by_global_norm(grads, 1.0)
    assert clipped["a"].dtype == np.float32
    assert global_norm(clipped) == pytest.approx(1, rel=1e-6)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_clipping_refuses_what_is_not_finite(value):
    with pytest.raises(ValueError, match=r"grads must be finite, got NaN or infinity in \['b'\]"):
        clip_by_global_norm({"a": np.ones(2), "b": np.array([1.0, value])}, 1.0)


# Schedule

#: Thirteen steps: four of climb, then a cosine whose ends, steps 4 and 12, are eight apart.
SCHEDULE = {"peak": 0.8, "floor": 0.2, "warmup_steps": 4, "total_steps": 13}


@pytest.mark.parametrize(
    ("step", "rate"),
    [(0, 0.2), (1, 0.4), (3, 0.8), (4, 0.8), (6, 0.2 + 0.6 * (1 + math.sqrt(0.5)) / 2), (8, 0.5), (12, 0.2)],
)
def test_schedule_by_hand(step, rate):
    assert warmup_cosine(step, **SCHEDULE) == pytest.approx(rate, rel=1e-14)


def test_schedule_climbs_then_falls_then_stays():
    rates = [warmup_cosine(step, **SCHEDULE) for step in range(20)]
    assert rates[:4] == sorted(set(rates[:4]))
    assert rates[4:13] == sorted(set(rates[4:13]), reverse=True)
    assert set(rates[12:]) == {0.2}


def test_schedule_without_climb_starts_at_the_peak():
    assert warmup_cosine(0, **SCHEDULE | {"warmup_steps": 0}) == 0.8


@pytest.mark.parametrize(
    ("warmup_steps", "total_steps"), [(0, 1), (0, 2), (3, 10), (9, 10), (1, 2), (5, 1000)]
)
def test_the_last_step_is_taken_at_the_floor(warmup_steps, total_steps):
    schedule = {"peak": 0.8, "floor": 0.1, "warmup_steps": warmup_steps, "total_steps": total_steps}
    assert warmup_cosine(total_steps - 1, **schedule) == 0.1
    if total_steps > 1:
        assert max(warmup_cosine(step, **schedule) for step in range(total_steps)) == pytest.approx(
            0.8, rel=1e-14
        )


def test_a_rate_is_a_float_of_python():
    numbers = {"peak": np.float32(0.5), "floor": np.float64(0.25)}
    rate = warmup_cosine(np.int64(3), **numbers, warmup_steps=np.int64(1), total_steps=np.int64(9))
    assert type(rate) is float


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"step": -1}, ValueError, "step must be at least 0, got -1"),
        ({"step": 1.0}, TypeError, "step must be an int"),
        ({"warmup_steps": -1}, ValueError, "warmup_steps must be at least 0, got -1"),
        ({"warmup_steps": 13}, ValueError, "warmup_steps must be less than total_steps = 13"),
        ({"total_steps": 0}, ValueError, "total_steps must be at least 1"),
        ({"floor": 0.9}, ValueError, "floor must be at most peak = 0.8"),
        ({"floor": -0.1}, ValueError, "floor must be at least 0"),
        ({"peak": 0}, ValueError, "peak must be positive"),
        ({"peak": "1"}, TypeError, "peak must be a real number"),
    ],
)
def test_schedule_refuses(change, error, message):
    with pytest.raises(error, match=message):
        warmup_cosine(**{"step": 0} | SCHEDULE | change)
