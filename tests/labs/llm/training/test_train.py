"""Training: stopped and resumed exactly, reported truly, and able to learn."""

import itertools
import math

import numpy as np
import pytest

from labs.llm.model import ModelConfig, forward, loss_and_grads
from labs.llm.ops import cross_entropy
from labs.llm.training import checkpoint as checkpoints
from labs.llm.training import data, optim
from labs.llm.training.train import TrainConfig, evaluate, start, train, train_step

TEXT = "she sells sea shells by the sea shore. " * 12
CORPUS = data.build_corpus(TEXT, 0.2)
CONFIG = ModelConfig(vocab_size=len(CORPUS.vocabulary), d_model=12, n_heads=2, n_layers=2, d_ff=10)
SETTINGS = TrainConfig(steps=7, batch_size=3, context=5, warmup_steps=2, report_every=3)


def fresh(dtype=np.float64):
    return start(CONFIG, CORPUS.vocabulary, seed=4, dtype=dtype)


def same(one, other):
    """Whether two checkpoints agree bit for bit."""
    groups = [(c.params, c.optimizer.mean, c.optimizer.square) for c in (one, other)]
    arrays = all(
        a.keys() == b.keys() and all(a[key].tobytes() == b[key].tobytes() for key in a)
        for a, b in zip(*groups, strict=True)
    )
    return arrays and one._replace(params=0, optimizer=one.step) == other._replace(
        params=0, optimizer=other.step
    )


# Stop and resume


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("stop", range(1, 7))
def test_a_run_resumed_from_memory_or_file_is_the_run_that_never_stopped(tmp_path, dtype, stop):
    straight = list(train(fresh(dtype), CORPUS, SETTINGS))
    first = list(itertools.islice(train(fresh(dtype), CORPUS, SETTINGS), stop))
    checkpoints.save(tmp_path / "run.npz", first[-1].checkpoint)
    for resumed in (first[-1].checkpoint, checkpoints.load(tmp_path / "run.npz")):
        progresses = first + list(train(resumed, CORPUS, SETTINGS))
        assert [p[:-1] for p in progresses] == [p[:-1] for p in straight]
        assert same(progresses[-1].checkpoint, straight[-1].checkpoint)


def test_the_comparison_sees_one_bit_and_the_generator():
    checkpoint = fresh()
    assert same(checkpoint, fresh())
    array = checkpoint.params["final_norm"].copy()
    array[3] = np.nextafter(array[3], 2)
    assert not same(checkpoint, checkpoint._replace(params=checkpoint.params | {"final_norm": array}))
    assert not same(checkpoint, checkpoint._replace(rng=np.random.PCG64(1).state))


def test_a_checkpoint_stays_what_it_was_while_training_goes_on():
    checkpoint = fresh()
    for _ in train(checkpoint, CORPUS, SETTINGS):
        pass
    assert same(checkpoint, fresh())


def test_reports_do_not_change_the_run():
    rare, often = (
        list(train(fresh(), CORPUS, TrainConfig(**vars(SETTINGS) | {"report_every": every})))
        for every in (7, 1)
    )
    assert same(rare[-1].checkpoint, often[-1].checkpoint)


def test_the_seed_decides_the_run():
    other = start(CONFIG, CORPUS.vocabulary, seed=5, dtype=np.float64)
    assert not same(fresh(), other)
    assert same(fresh(), fresh())


def test_nothing_is_left_to_do_after_the_last_step():
    *_, last = train(fresh(), CORPUS, SETTINGS)
    assert last.step == last.checkpoint.step == 7
    assert list(train(last.checkpoint, CORPUS, SETTINGS)) == []


# What is reported


def test_one_step_composed_by_hand():
    checkpoint = fresh()
    adamw = optim.AdamWConfig(beta1=0.5, weight_decay=0.3)
    settings = TrainConfig(
        steps=9, batch_size=3, context=5, max_norm=0.01, peak=3e-4, warmup_steps=0, adamw=adamw
    )
    rng = np.random.default_rng()
    rng.bit_generator.state = checkpoint.rng
    inputs, targets = data.draw_batch(CORPUS.training, 3, 5, rng)
    loss, grads = loss_and_grads(checkpoint.params, inputs, targets, CONFIG)
    norm = math.sqrt(sum((grad**2).sum() for grad in grads.values()))
    grads = {key: grad * 0.01 / norm for key, grad in grads.items()}
    params, _ = optim.adamw(checkpoint.params, grads, checkpoint.optimizer, 3e-4, adamw)

    progress = train_step(checkpoint, CORPUS.training, settings)
    assert (progress.step, progress.loss, progress.learning_rate) == (1, loss, 3e-4)
    assert progress.validation_loss is None
    assert norm > 0.01
    assert progress.grad_norm == pytest.approx(norm, rel=1e-12)
    assert progress.checkpoint.rng == rng.bit_generator.state
    for key, array in progress.checkpoint.params.items():
        np.testing.assert_allclose(array, params[key], rtol=1e-9)


def test_training_sees_the_training_part_only():
    blank = CORPUS._replace(validation=np.zeros_like(CORPUS.validation))
    ends = [list(train(fresh(), corpus, SETTINGS))[-1] for corpus in (CORPUS, blank)]
    assert same(ends[0].checkpoint, ends[1].checkpoint)
    assert ends[0].validation_loss != ends[1].validation_loss


def test_rates_follow_the_schedule():
    rates = [progress.learning_rate for progress in train(fresh(), CORPUS, SETTINGS)]
    schedule = {"peak": 3e-3, "floor": 3e-4, "warmup_steps": 2, "total_steps": 7}
    assert rates == [optim.warmup_cosine(step, **schedule) for step in range(7)]


def test_validation_losses_come_in_rhythm_and_at_the_end():
    reported = [p.step for p in train(fresh(), CORPUS, SETTINGS) if p.validation_loss is not None]
    assert reported == [3, 6, 7]


def test_the_validation_loss_is_the_mean_over_all_windows_whatever_the_batches():
    *_, last = train(fresh(), CORPUS, SETTINGS)
    inputs, targets = data.windows(CORPUS.validation, 5)
    assert len(inputs) % 4 != 0  # the last batch is a smaller one, and must not weigh as much as the others
    logits, _ = forward(last.checkpoint.params, inputs, CONFIG)
    expected, _ = cross_entropy(logits, targets)
    assert last.validation_loss == pytest.approx(expected, rel=1e-12)
    for batch_size in (1, 4, 1000):
        settings = TrainConfig(**vars(SETTINGS) | {"batch_size": batch_size})
        assert evaluate(last.checkpoint, CORPUS.validation, settings) == pytest.approx(expected, rel=1e-12)


def test_the_file_holds_the_last_report(tmp_path):
    path = tmp_path / "run.npz"
    on_disk = [
        checkpoints.load(path).step if path.exists() else None
        for _ in train(fresh(), CORPUS, SETTINGS, path=path)
    ]
    assert on_disk == [None, None, 3, 3, 3, 6, 7]


# Learning


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_loss_starts_near_the_logarithm_of_the_vocabulary_and_falls(dtype):
    settings = TrainConfig(steps=120, batch_size=8, context=12, peak=1e-2, report_every=120)
    *_, last = progresses = list(train(fresh(dtype), CORPUS, settings))
    assert progresses[0].loss == pytest.approx(math.log(CONFIG.vocab_size), abs=0.2)
    assert last.loss < 1
    assert last.validation_loss < 1
    assert {array.dtype for array in last.checkpoint.params.values()} == {np.dtype(dtype)}


def test_with_one_character_there_is_nothing_to_learn():
    """The broken text: every target is the only character, so the loss is zero from the start."""
    corpus = data.build_corpus("a" * 100)
    config = ModelConfig(vocab_size=1, d_model=4, n_heads=2, d_ff=3)
    progress = train_step(start(config, corpus.vocabulary, seed=0), corpus.training, SETTINGS)
    assert progress.loss == 0
    assert progress.grad_norm == 0


# Refusals


def test_another_vocabulary_is_refused_at_once():
    corpus = data.build_corpus(TEXT.replace("s", "z"))
    assert len(corpus.vocabulary) == len(CORPUS.vocabulary)
    with pytest.raises(ValueError, match="corpus must have the checkpoint's vocabulary"):
        train(fresh(), corpus, SETTINGS)


@pytest.mark.parametrize("part", ["training", "validation"])
def test_a_part_shorter_than_the_context_is_refused_at_once(part):
    corpus = CORPUS._replace(**{part: CORPUS.training[:5]})
    with pytest.raises(ValueError, match=rf"corpus\.{part} must hold at least T \+ 1 = 6 tokens.* got N = 5"):
        train(fresh(), corpus, SETTINGS)


def test_a_training_that_diverges_says_so_and_keeps_the_last_file(tmp_path):
    path = tmp_path / "run.npz"
    *_, last = train(fresh(np.float32), CORPUS, SETTINGS, path=path)
    settings = TrainConfig(
        **vars(SETTINGS) | {"steps": 50, "peak": 1e38, "report_every": 1, "warmup_steps": 0}
    )
    with np.errstate(all="ignore"), pytest.raises(ValueError, match=r"finite"):
        for _ in train(last.checkpoint, CORPUS, settings, path=path):
            pass
    assert same(checkpoints.load(path), last.checkpoint)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"steps": 0}, ValueError, "steps must be at least 1"),
        ({"batch_size": 2.0}, TypeError, "batch_size must be an int"),
        ({"context": True}, TypeError, "context must be an int"),
        ({"report_every": 0}, ValueError, "report_every must be at least 1"),
        ({"max_norm": 0}, ValueError, "max_norm must be positive"),
        ({"warmup_steps": 7}, ValueError, "warmup_steps must be less than total_steps = 7"),
        ({"floor": 1.0}, ValueError, "floor must be at most peak"),
        ({"adamw": {}}, TypeError, "adamw must be of type AdamWConfig, got dict"),
    ],
)
def test_settings_refuse(change, error, message):
    with pytest.raises(error, match=message):
        TrainConfig(**vars(SETTINGS) | change)


@pytest.mark.parametrize("real", [np.float64, np.float32])
def test_settings_of_numpy_train_in_float32(real):
    """As from np.logspace: the numbers are those of Python, and so is the run."""
    counts = {"steps": 3, "batch_size": 2, "context": 5, "warmup_steps": 1, "report_every": 2}
    numbers = {"peak": 0.25, "floor": 0.125, "max_norm": 0.5}
    adamw = {"beta1": 0.5, "beta2": 0.75, "eps": 0.125, "weight_decay": 0.25}
    runs = []
    for kind, count in ((real, np.int64), (float, int)):
        settings = TrainConfig(
            **{name: count(number) for name, number in counts.items()},
            **{name: kind(number) for name, number in numbers.items()},
            adamw=optim.AdamWConfig(**{name: kind(number) for name, number in adamw.items()}),
        )
        *_, last = train(start(CONFIG, CORPUS.vocabulary, seed=count(4)), CORPUS, settings)
        runs.append(last.checkpoint)
    assert same(*runs)
    assert {array.dtype for array in runs[0].params.values()} == {np.dtype(np.float32)}


def test_a_path_where_nothing_can_be_saved_is_refused_before_the_first_step(tmp_path):
    (tmp_path / "file").write_text("")
    for path, error in (
        (tmp_path / "nowhere" / "x.npz", FileNotFoundError),
        (tmp_path / "file" / "x.npz", NotADirectoryError),
        (tmp_path, IsADirectoryError),
    ):
        with pytest.raises(error, match="path must") as caught:
            train(fresh(), CORPUS, SETTINGS, path=path)
        assert caught.value.filename == str(path)
    with pytest.raises(TypeError, match=r"path must be a str or a pathlib\.Path, got int"):
        train(fresh(), CORPUS, SETTINGS, path=3)
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_activations_too_large_for_float32_are_noticed():
    checkpoint = fresh(np.float32)
    large = checkpoint.params["embedding"] * np.float32(1e20)
    diverged = checkpoint._replace(params=checkpoint.params | {"embedding": large})
    with pytest.raises(ValueError, match="x must be finite, and small enough for its square"):
        train_step(diverged, CORPUS.training, SETTINGS)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"checkpoint": None}, "checkpoint must be of type Checkpoint, got NoneType"),
        ({"corpus": {}}, "corpus must be of type Corpus, got dict"),
        ({"settings": {}}, "settings must be of type TrainConfig, got dict"),
    ],
)
def test_train_refuses_arguments_of_another_kind(change, words):
    with pytest.raises(TypeError, match=words):
        train(**{"checkpoint": fresh(), "corpus": CORPUS, "settings": SETTINGS} | change)


def test_parameters_that_are_not_finite_are_refused_at_once():
    checkpoint = fresh()
    broken = checkpoint.params | {"final_norm": np.full(12, np.nan)}
    with pytest.raises(ValueError, match="params of final_norm must hold finite numbers"):
        train(checkpoint._replace(params=broken), CORPUS, SETTINGS)


def test_start_refuses():
    with pytest.raises(ValueError, match=f"vocabulary must hold V = {CONFIG.vocab_size} characters, got 2"):
        start(CONFIG, ("a", "b"), seed=0)
    with pytest.raises(
        TypeError, match="vocabulary must be a sequence of characters, such as a tuple, got set"
    ):
        start(CONFIG, set(CORPUS.vocabulary), seed=0)
    with pytest.raises(ValueError, match="vocabulary must hold single characters, each once"):
        start(CONFIG, ("a",) * CONFIG.vocab_size, seed=0)
    for seed in (None, 0.5, np.random.default_rng(0)):
        with pytest.raises(TypeError, match="seed must be an int"):
            start(CONFIG, CORPUS.vocabulary, seed)
