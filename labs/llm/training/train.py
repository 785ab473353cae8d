"""Training as a chain of checkpoints: each step makes the next one out of the last, and of nothing else.

So a run can be stopped after any step and go on later, from memory or from a file, exactly as if it had never
stopped: the same batches, the same losses, the same parameters, bit for bit (on one machine; another one may
add in another order, and round differently).
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from labs.llm import arguments
from labs.llm.model import forward, init_params, loss_and_grads
from labs.llm.ops import cross_entropy
from labs.llm.parameters import require_config
from labs.llm.training import data, optim
from labs.llm.training.checkpoint import Checkpoint, generator, require_checkpoint, require_writable, save
from labs.llm.training.memory import keep_freed_memory


@dataclass(frozen=True)
class TrainConfig:
    """The settings of a training run. To go on exactly, go on with the same ones."""

    steps: int  # of the whole run, the steps before a stop included
    batch_size: int = 16  # B
    context: int = 64  # T
    peak: float = 3e-3  # the largest learning rate, reached after the warm-up
    floor: float = 3e-4  # the learning rate at the end
    warmup_steps: int = 10
    max_norm: float = 1.0  # longer gradients are shortened to it
    report_every: int = 100  # steps from one validation loss, and one saved checkpoint, to the next
    adamw: optim.AdamWConfig = field(default_factory=optim.AdamWConfig)

    def __post_init__(self):
        for name in ("steps", "batch_size", "context", "report_every"):
            object.__setattr__(self, name, arguments.require_size(name, getattr(self, name)))
        for name in ("peak", "max_norm"):
            object.__setattr__(self, name, arguments.require_positive(name, getattr(self, name)))
        object.__setattr__(self, "floor", arguments.require_at_least_zero("floor", self.floor))
        warmup_steps = arguments.require_size("warmup_steps", self.warmup_steps, least=0)
        object.__setattr__(self, "warmup_steps", warmup_steps)
        arguments.require_type(
            "adamw", self.adamw, optim.AdamWConfig, "AdamWConfig() has the usual constants"
        )
        self.learning_rate(0)

    def learning_rate(self, step):
        """Return the learning rate of a step, counted from zero; refuses rates that do not fit together."""
        return optim.warmup_cosine(
            step, peak=self.peak, floor=self.floor, warmup_steps=self.warmup_steps, total_steps=self.steps
        )


class Progress(NamedTuple):
    """What one training step reports."""

    step: int  # how many steps are done, this one included
    loss: float  # of the step's batch before the step, in nats
    grad_norm: float  # the global norm before clipping
    learning_rate: float  # of the step
    validation_loss: float | None  # after the step, in nats; None where the step is not to report it
    checkpoint: Checkpoint  # after the step: what to go on from


def start(config, vocabulary, seed, dtype=np.float32):
    """Return the Checkpoint before the first step.

    Args:
        config: the ModelConfig.
        vocabulary: a sequence of V distinct characters, as from data.build_vocabulary.
        seed: an int of at least 0. It decides the first parameters and every batch.
        dtype: np.float32 or np.float64, of everything that is computed.

    Raises: ValueError or TypeError if vocabulary and config disagree on V, if the vocabulary is not valid, or
        as init_params does.
    """
    require_config(config)
    data.require_vocabulary(vocabulary, config.vocab_size)
    seed = arguments.require_size("seed", seed, least=0)
    rng = np.random.Generator(np.random.PCG64(seed))
    params = init_params(config, rng, dtype)
    return Checkpoint(config, tuple(vocabulary), params, optim.adamw_init(params), rng.bit_generator.state)


def train(checkpoint, corpus, settings, *, path=None):
    """Train from a checkpoint up to settings.steps, one step each time the caller asks for the next Progress.

        for progress in train(start(config, corpus.vocabulary, seed=0), corpus, settings):
            ...                          # leave the loop at any time: progress.checkpoint is all that matters
        train(progress.checkpoint, corpus, settings)       # goes on; so does train(load(path), ...)

    Every settings.report_every steps, and after the last one, the validation loss is computed over the whole
    validation part, and the checkpoint is saved.

    Args:
        checkpoint: from `start`, from a Progress, or from checkpoint.load.
        corpus: the data.Corpus.
        settings: the TrainConfig.
        path: where to save checkpoints, whole or not at all; None saves none.

    Returns: an iterator of Progress; empty if settings.steps are done already.
    Raises: at once, ValueError or TypeError if corpus, checkpoint and settings do not fit together, and
        OSError if nothing can be saved at `path`; later, ValueError if the training diverges, before the step
        that would spoil the parameters.
    """
    keep_freed_memory()
    _require_arguments(checkpoint, settings)
    require_checkpoint(checkpoint)
    arguments.require_type("corpus", corpus, data.Corpus, "data.build_corpus(text) makes it")
    data.require_vocabulary(corpus.vocabulary)
    if tuple(corpus.vocabulary) != tuple(checkpoint.vocabulary):
        raise ValueError(
            "corpus must have the checkpoint's vocabulary "
            f"{arguments.shown(''.join(checkpoint.vocabulary))}, got "
            f"{arguments.shown(''.join(corpus.vocabulary))}: ids would stand for other characters"
        )
    data.require_text_ids("corpus.training", corpus.training, settings.context)
    data.require_text_ids("corpus.validation", corpus.validation, settings.context)
    if path is not None:
        require_writable(path)
    return _steps(checkpoint, corpus, settings, path)


def _steps(checkpoint, corpus, settings, path):
    for _ in range(checkpoint.step, settings.steps):
        progress = train_step(checkpoint, corpus.training, settings)
        checkpoint = progress.checkpoint
        if checkpoint.step % settings.report_every == 0 or checkpoint.step == settings.steps:
            progress = progress._replace(validation_loss=evaluate(checkpoint, corpus.validation, settings))
            if path is not None:
                save(path, checkpoint)
        yield progress


def train_step(checkpoint, ids, settings):
    """Take one step: draw a batch, get the gradients, clip them, let AdamW move the parameters.

    Args:
        checkpoint: before the step; it stays as it is.
        ids: the text to train on, integers, (N,).
        settings: the TrainConfig.

    Returns: the Progress, without a validation loss.
    """
    _require_arguments(checkpoint, settings)
    rng = generator(checkpoint.rng)
    inputs, targets = data.draw_batch(ids, settings.batch_size, settings.context, rng)
    loss, grads = loss_and_grads(checkpoint.params, inputs, targets, checkpoint.config)
    grads, norm = optim.clip_by_global_norm(grads, settings.max_norm)
    rate = settings.learning_rate(checkpoint.step)
    params, optimizer = optim.adamw(checkpoint.params, grads, checkpoint.optimizer, rate, settings.adamw)
    after = checkpoint._replace(params=params, optimizer=optimizer, rng=rng.bit_generator.state)
    return Progress(after.step, float(loss), norm, rate, None, after)


def evaluate(checkpoint, ids, settings):
    """Return the mean loss over a text cut into consecutive windows, in nats; nothing is drawn or moved.

    Args:
        checkpoint: the Checkpoint.
        ids: a text, integers, (N,), of at least T + 1 tokens.
        settings: the TrainConfig; it gives T, and B, how many windows go through the model at a time.
    """
    _require_arguments(checkpoint, settings)
    inputs, targets = data.windows(ids, settings.context)
    total = 0.0
    for first in range(0, len(inputs), settings.batch_size):
        rows = slice(first, first + settings.batch_size)  # the last batch may be smaller
        logits = forward(checkpoint.params, inputs[rows], checkpoint.config)[0]
        loss = cross_entropy(logits, targets[rows])[0]
        total += float(loss) * len(inputs[rows])
    return total / len(inputs)


def _require_arguments(checkpoint, settings):
    arguments.require_type("checkpoint", checkpoint, Checkpoint, "start makes one, and load reads one")
    arguments.require_type(
        "checkpoint.optimizer", checkpoint.optimizer, optim.AdamWState, "adamw_init makes it"
    )
    arguments.require_type("settings", settings, TrainConfig, "write TrainConfig(steps=...)")
