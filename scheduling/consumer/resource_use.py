"""Measures the CPU time and the peak memory of a run, in the child that runs it."""

from __future__ import annotations

import os
import resource
import sys
from typing import Any

_RESET = "/proc/self/clear_refs"
_RESET_PEAK = b"5"
"""Lets the kernel forget the peak of the resident memory (proc(5)). This does not touch the pages themselves."""


class ResourceUse:
    """The resources that a run uses, from the time at which this object is made."""

    def __init__(self) -> None:
        self._knows_peak = _forget_peak()
        self._cpu = _cpu_seconds()

    def so_far(self) -> dict[str, Any]:
        """The figures for the supervisor: CPU time in ms, and peak memory in kB; None for a figure that is unknown.

        The CPU time includes the processes that the run has started and waited for. The memory is that of the child
        alone.
        """
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss if self._knows_peak else None
        return {"cpu_ms": round((_cpu_seconds() - self._cpu) * 1000), "peak_memory_kb": peak}


def _cpu_seconds() -> float:
    found = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in found)


def _forget_peak() -> bool:
    """Begin to measure the peak memory anew; returns whether the system can do it."""
    if sys.platform != "linux":
        return False
    try:
        descriptor = os.open(_RESET, os.O_WRONLY)
        try:
            os.write(descriptor, _RESET_PEAK)
        finally:
            os.close(descriptor)
    except OSError:  # for example a sandbox without this file
        return False
    return True
