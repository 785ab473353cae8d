"""Run pytest again and again beside two busy loops: `python tests/busy.py RUNS [ARGUMENTS OF PYTEST ...]`.

What waits for a moment instead of for what it needs to see fails here first.
"""

import os
import subprocess
import sys

#: Computes for as long as the process whose id it is given is its parent, however that one ends.
LOOP = "import os, sys\nwhile os.getppid() == int(sys.argv[1]): pass"


def start_loop() -> subprocess.Popen:
    """Start a process that keeps one processor busy for as long as this process lives."""
    return subprocess.Popen([sys.executable, "-c", LOOP, str(os.getpid())])


def main(runs: int, arguments: list[str]) -> int:
    """Run pytest up to `runs` times; returns the exit code of the first run that fails, or 0."""
    loops = [start_loop() for _ in range(2)]
    try:
        for run in range(1, runs + 1):
            print(f"Run {run} of {runs} beside {len(loops)} busy loops", flush=True)
            if code := subprocess.call([sys.executable, "-m", "pytest", *arguments]):
                return code
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
