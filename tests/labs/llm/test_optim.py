"""AdamW against hand computations and PyTorch, clipping, and the schedule."""

import math

import numpy as np
import pytest

from labs.llm.optim import AdamWConfig, adamw, adamw_init, clip_by_global_norm, global_norm, warmup_cosine

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
    "shape": (lambda arrays: arrays.update(w=np.ones((2, 1))), r"of w must have .* got \(2, 1\)"),
    "dtype": (lambda arrays: arrays.update(w=np.ones((2, 2), np.float32)), "of w must have .* float32"),
}


@pytest.mark.parametrize(("change", "message"), CHANGES.values(), ids=CHANGES.keys())
@pytest.mark.parametrize("name", ["grads", "state.mean", "state.square"])
def test_adamw_refuses_what_does_not_fit_the_parameters(name, change, message):
    params = small_params()
    grads, state = ones_like(params), adamw_init(params)
    change({"grads": grads, "state.mean": state.mean, "state.square": state.square}[name])
    with pytest.raises(ValueError, match=f"{name} {message}"):
        adamw(params, grads, state, 0.1, CONFIG)


@pytest.mark.parametrize("step", [-1, 1.0, True])
def test_adamw_refuses_a_step_that_counts_nothing(step):
    params = small_params()
    with pytest.raises(ValueError, match="step must be an int of at least 0"):
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


def test_state_is_made_for_floats_only():
    with pytest.raises(TypeError, match="w must hold floating-point numbers"):
        adamw_init({"w": np.ones((2, 2), int)})


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

SCHEDULE = {"peak": 0.8, "floor": 0.2, "warmup_steps": 4, "total_steps": 12}


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
    ("change", "error", "message"),
    [
        ({"step": -1}, ValueError, "step must be an int of at least 0"),
        ({"step": 1.0}, ValueError, "step must be an int of at least 0"),
        ({"warmup_steps": -1}, ValueError, "warmup_steps must be an int of at least 0"),
        ({"warmup_steps": 12}, ValueError, "warmup_steps must be less than total_steps = 12"),
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
