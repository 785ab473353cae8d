"""Time and memory of the gradients, and of a training step, in float32, beside PyTorch on the CPU.

    python -m venv .venv-benchmark && . .venv-benchmark/bin/activate
    pip install -e . torch==2.13.0 threadpoolctl
    python benchmarks/step.py

Every implementation starts from the same parameters and takes the same steps; the losses are compared first.
Each is alone in its process, because in a common one PyTorch would change how glibc keeps freed memory, and
they take turns, so that whatever else the machine does falls on all. Medians are compared: with one thread of
processor time, with two of the time on the clock, for which the machine must be idle. PyTorch runs with its
fused attention and with attention written out; the faster of the two counts. Peak memory is what training
adds to a process, as the system counts it (Linux only), with one thread.
"""

import contextlib
import multiprocessing
import os
import statistics
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits

from labs.llm.model import ModelConfig, init_params, loss_and_grads
from labs.llm.training.memory import keep_freed_memory
from labs.llm.training.optim import AdamWConfig, adamw, adamw_init

#: (B, T, d, H, L, f, V), and the share of PyTorch's time for the gradients that we aim at, with one thread.
CASES = [
    ((2, 5, 8, 2, 1, 16, 28), 0.50),
    ((16, 64, 32, 4, 1, 64, 28), 0.76),
    ((32, 128, 128, 4, 4, 344, 65), 0.70),
]
FUSED, WRITTEN_OUT = "PyTorch, fused attention", "PyTorch, written out"
IMPLEMENTATIONS = ("labs.llm", FUSED, WRITTEN_OUT)
TASKS = ("gradients", "step")
LEARNING_RATE = 1e-3
ADAMW = AdamWConfig()
TURNS, SECONDS_A_TURN = 12, 0.3
STEPS_COMPARED = 3


class Tasks(NamedTuple):
    """Two functions without arguments; each returns the loss."""

    gradients: object
    step: object  # the gradients, and AdamW


def setting(case):
    """Return the ModelConfig, and the same parameters and batch (inputs, targets) at every call."""
    B, T, D, H, L, F, V = case
    config = ModelConfig(vocab_size=V, d_model=D, n_heads=H, n_layers=L, d_ff=F)
    ids = np.random.default_rng(0).integers(0, V, (B, T + 1))
    return config, init_params(config, seed=1, dtype=np.float32), (ids[:, :-1], ids[:, 1:])


def labs_tasks(params, batch, config):
    """Return the Tasks of labs.llm."""
    keep_freed_memory()  # as `train` does
    state = adamw_init(params)

    def gradients():
        return float(loss_and_grads(params, *batch, config)[0])

    def step():
        nonlocal params, state
        loss, grads = loss_and_grads(params, *batch, config)
        params, state = adamw(params, grads, state, LEARNING_RATE, ADAMW)
        return float(loss)

    return Tasks(gradients, step)


def torch_tasks(params, batch, config, explicit):
    """Return the Tasks of PyTorch."""
    import torch  # here, so that the process of labs.llm does without
    from torch_model import Trainer

    tensors = [torch.tensor(array) for array in batch]
    context = batch[0].shape[1]
    trainer = Trainer(params, config, context, explicit, learning_rate=LEARNING_RATE, adamw=ADAMW)
    return Tasks(lambda: trainer.gradients(*tensors), lambda: trainer.step(*tensors))


def serve(connection, implementation, case, threads):
    """Answer, in a process of its own: the losses of the first steps, then the times of whatever is asked."""
    if implementation != "labs.llm":
        import torch

        torch.set_num_threads(threads)
        torch.ones(512, 512) @ torch.ones(512, 512)
    with threadpool_limits(threads):
        np.ones((512, 512), np.float32) @ np.ones((512, 512), np.float32)
        # by now the libraries are loaded, and have the buffers that they keep
        Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
        before = _memory("VmRSS")
        config, params, batch = setting(case)
        if implementation == "labs.llm":
            tasks = labs_tasks(params, batch, config)
        else:
            tasks = torch_tasks(params, batch, config, implementation == WRITTEN_OUT)
        losses = [tasks.step() for _ in range(STEPS_COMPARED)]
        connection.send((losses, _memory("VmHWM") - before))
        clock = time.process_time if threads == 1 else time.perf_counter
        with contextlib.suppress(EOFError):
            while True:
                connection.send(_times(getattr(tasks, connection.recv()), clock))


def _times(run, clock):
    """Return how long each call took in a turn of SECONDS_A_TURN."""
    times, end = [], time.monotonic() + SECONDS_A_TURN
    while not times or time.monotonic() < end:
        start = clock()
        run()
        times.append(clock() - start)
    return times


def _memory(field):
    """Return a line of /proc/self/status in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (line,) = [line for line in lines if line.startswith(f"{field}:")]
    return 1024 * int(line.split()[1])


def measure(case, threads):
    """Return by implementation the median milliseconds of each task, and the peak in megabytes.

    Raises: AssertionError unless all have the same losses over the first steps, as far as float32 allows.
    """
    context, connections = multiprocessing.get_context("spawn"), {}
    for name in IMPLEMENTATIONS:
        connections[name], theirs = context.Pipe()
        context.Process(target=serve, args=(theirs, name, case, threads), daemon=True).start()
        theirs.close()
    started = {name: connection.recv() for name, connection in connections.items()}
    losses = [losses for losses, _ in started.values()]
    np.testing.assert_allclose(losses, [losses[0]] * len(losses), rtol=1e-4)
    times = {name: {task: [] for task in TASKS} for name in IMPLEMENTATIONS}
    for _ in range(TURNS):
        for task in TASKS:
            for name, connection in connections.items():
                connection.send(task)
                times[name][task] += connection.recv()
    for connection in connections.values():
        connection.close()
    medians = {
        name: {task: 1e3 * statistics.median(each) for task, each in tasks.items()}
        for name, tasks in times.items()
    }
    return medians, {name: peak / 1e6 for name, (_, peak) in started.items()}


def report(case, threads, aim):
    """Measure one case and print its rows."""
    medians, peaks = measure(case, threads)
    for task in TASKS:
        row = [medians[name][task] for name in IMPLEMENTATIONS]
        wanted = f"{aim:.2f}" if task == "gradients" and threads == 1 else ""
        cells = [*(f"{value:.3g}" for value in row), f"{row[0] / min(row[1:]):.2f}", wanted]
        cells += [f"{peak:.1f}" for peak in peaks.values()]
        print(f"| {case} | {threads} | {task} | {' | '.join(cells)} |", flush=True)


def main():
    """Print what runs, and the table."""
    if "OPENBLAS_CORETYPE" in os.environ:
        sys.exit("OPENBLAS_CORETYPE makes NumPy's BLAS use the kernels of another processor: unset it")
    import torch

    print(f"NumPy {np.__version__}, PyTorch {torch.__version__}, {os.cpu_count()} processors")
    for library in threadpool_info():
        print(f"  {library['internal_api']} {library['version']} {library.get('architecture', '')}")
    print(f"  {torch.backends.cpu.get_cpu_capability()} (PyTorch)")
    print(f"  load of the last minute: {os.getloadavg()[0]:.1f}\n")
    print("Milliseconds (median), ratio to the faster PyTorch, and the megabytes of training at its peak\n")
    print("| B T d H L f V | threads | task | labs | torch fused | torch written out | ratio | aim ", end="")
    print("| labs MB | torch fused MB | torch written out MB |")
    print("|---" * 11 + "|")
    for threads in (1, 2):
        for case, aim in CASES:
            report(case, threads, aim)


if __name__ == "__main__":
    main()
