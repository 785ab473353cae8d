"""Time and memory of one training step, forward + backward + AdamW in float32, beside PyTorch on the CPU.

    python -m venv .venv-benchmark && . .venv-benchmark/bin/activate
    pip install -e . torch==2.13.0 threadpoolctl
    python benchmarks/step.py

Both start from the same parameters and take the same steps: the losses are compared first. Then they take
turns, so that whatever else the machine does falls on both, and the medians are compared. PyTorch runs with
its fused attention and with attention written out; the faster of the two counts. Peak memory is what
training adds to a fresh process, as the system counts it (Linux only), with one thread.
Run it on an idle machine: with two threads, a processor that is busy elsewhere makes both wait.
"""

import multiprocessing
import os
import statistics
import sys
import time
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits

from labs.llm.model import ModelConfig, init_params, loss_and_grads
from labs.llm.training.optim import AdamWConfig, adamw, adamw_init

#: (B, T, d, H, L, f, V), and the share of PyTorch's time that we aim at.
CASES = [
    ((2, 5, 8, 2, 1, 16, 28), 0.25),
    ((16, 64, 32, 4, 1, 64, 28), 0.8),
    ((32, 128, 128, 4, 4, 344, 65), 1.0),
]
IMPLEMENTATIONS = ("labs.llm", "PyTorch, fused attention", "PyTorch, written out")
LEARNING_RATE = 1e-3
ADAMW = AdamWConfig()
SECONDS = 4  # for each implementation, case and number of threads
STEPS_COMPARED = 3


def setting(case):
    """Return the ModelConfig, and the same parameters and batch (inputs, targets) at every call."""
    B, T, D, H, L, F, V = case
    config = ModelConfig(vocab_size=V, d_model=D, n_heads=H, n_layers=L, d_ff=F)
    ids = np.random.default_rng(0).integers(0, V, (B, T + 1))
    return config, init_params(config, seed=1, dtype=np.float32), (ids[:, :-1], ids[:, 1:])


def make_step(implementation, case):
    """Return a function that takes one training step and returns the loss before it."""
    config, params, (inputs, targets) = setting(case)
    if implementation == "labs.llm":
        return labs_step(params, inputs, targets, config)
    import torch  # here, so that the process that measures the memory of labs.llm does without
    from torch_model import Trainer

    explicit = implementation == "PyTorch, written out"
    trainer = Trainer(params, config, case[1], explicit, learning_rate=LEARNING_RATE, adamw=ADAMW)
    batch = torch.tensor(inputs), torch.tensor(targets)
    return lambda: trainer.step(*batch)


def labs_step(params, inputs, targets, config):
    """Return a function that trains `params`, as make_step does."""
    state = adamw_init(params)

    def step():
        nonlocal params, state
        loss, grads = loss_and_grads(params, inputs, targets, config)
        params, state = adamw(params, grads, state, LEARNING_RATE, ADAMW)
        return float(loss)

    return step


def compare_losses(case):
    """Stop unless every implementation has the same losses over the first steps, as float32 allows."""
    losses = [
        [step() for _ in range(STEPS_COMPARED)]
        for step in (make_step(name, case) for name in IMPLEMENTATIONS)
    ]
    np.testing.assert_allclose(losses, [losses[0]] * len(losses), rtol=1e-4)


def median_times(case, threads):
    """Return the median seconds of a step for each implementation, taking turns."""
    import torch

    torch.set_num_threads(threads)
    with threadpool_limits(threads):
        steps = {name: make_step(name, case) for name in IMPLEMENTATIONS}
        times = {name: [] for name in IMPLEMENTATIONS}
        for step in steps.values():
            for _ in range(3):
                step()
        while sum(map(sum, times.values())) < SECONDS * len(IMPLEMENTATIONS):
            for name, step in steps.items():
                start = time.perf_counter()
                step()
                times[name].append(time.perf_counter() - start)
    return {name: statistics.median(seconds) for name, seconds in times.items()}


def peak_bytes(implementation, case):
    """Return what training adds to the memory of a fresh process, parameters and AdamW's state included."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_peak_bytes_here, (implementation, case))


def _peak_bytes_here(implementation, case):
    if implementation != "labs.llm":
        import torch

        torch.set_num_threads(1)
        matrix = torch.ones(512, 512)
    else:
        matrix = np.ones((512, 512), np.float32)
    with threadpool_limits(1):
        make_step(implementation, CASES[0][0])()
        matrix @ matrix  # by now the libraries are loaded, and have the buffers that they keep
        Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
        before = _memory("VmRSS")
        step = make_step(implementation, case)
        for _ in range(4):
            step()
        return _memory("VmHWM") - before


def _memory(field):
    """Return a line of /proc/self/status in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (line,) = [line for line in lines if line.startswith(f"{field}:")]
    return 1024 * int(line.split()[1])


def report(case, aim):
    """Measure one case and print its rows."""
    compare_losses(case)
    peaks = {name: peak_bytes(name, case) / 1e6 for name in IMPLEMENTATIONS}
    for threads in (1, 2):
        times = {name: 1e3 * seconds for name, seconds in median_times(case, threads).items()}
        ours = times.pop("labs.llm")
        rival = min(times, key=times.get)
        ratio = ours / times[rival]
        print(
            f"| {case} | {threads} | {ours:.2f} | "
            + " | ".join(f"{value:.2f}" for value in times.values())
            + f" | {ratio:.2f} | {aim} | "
            + " | ".join(f"{peak:.1f}" for peak in peaks.values())
            + " |",
            flush=True,
        )


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
    print("Milliseconds a step (median), and the megabytes that training takes at its peak\n")
    print("| B T d H L f V | threads | labs | torch fused | torch written out | ratio | aim ", end="")
    print("| labs MB | torch fused MB | torch written out MB |")
    print("|---" * 10 + "|")
    for case, aim in CASES:
        report(case, aim)


if __name__ == "__main__":
    main()
