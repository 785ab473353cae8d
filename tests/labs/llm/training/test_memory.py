"""Freed memory stays with the process where that can be asked for, and importing changes nothing."""

import ctypes
import subprocess
import sys
from types import SimpleNamespace

import pytest

from labs.llm.training import memory

#: Prints how often a page had to be fetched from the system while an array was made and freed many times.
FAULTS = """
import resource, sys
import numpy as np
from labs.llm.training import memory, train

if "keep" in sys.argv:
    assert memory.keep_freed_memory()
np.ones(1 << 23)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    np.ones(1 << 23)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""

glibc = pytest.mark.skipif(
    sys.platform != "linux" or not hasattr(ctypes.CDLL(None), "mallopt"), reason="there is no glibc here"
)


def faults(*arguments):
    command = [sys.executable, "-c", FAULTS, *arguments]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


@glibc
def test_freed_memory_is_used_again_and_importing_changes_nothing():
    assert faults("keep") < faults() / 100


@pytest.mark.parametrize("platform", ["darwin", "win32"])
def test_other_systems_are_left_alone(monkeypatch, platform):
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(ctypes, "CDLL", lambda _: pytest.fail("no library is asked"))
    assert memory.keep_freed_memory() is False


def test_a_linux_without_glibc_is_left_alone(monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(ctypes, "CDLL", lambda _: SimpleNamespace())  # musl has no mallopt
    assert memory.keep_freed_memory() is False
