"""Whether freed memory stays with the process: on Linux, up to half the time of a training step."""

import ctypes
import sys

#: Parameters of mallopt, from malloc.h.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3

_BYTES = 1 << 30


def keep_freed_memory():
    """Keep up to 1 GiB of freed memory for the next arrays of this process.

    A step makes and frees hundreds of arrays of some megabytes. By default the C library of Linux, glibc,
    gives such memory back to the system at once, and then gets it again page by page, each page zeroed. The
    peak of memory does not change. `train` and the benchmark call this; importing the package does not.

    Returns: True if memory is kept from now on; False where the C library has no such setting.
    """
    if sys.platform != "linux":
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    # both: either of them alone makes a step slower than neither
    return bool(mallopt(_TRIM_THRESHOLD, _BYTES) and mallopt(_MMAP_THRESHOLD, _BYTES))
