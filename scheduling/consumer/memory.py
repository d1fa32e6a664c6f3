"""Measures the memory of runs that have a memory limit."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence

from scheduling.consumer.descendants import PAGE_BYTES, all_processes
from scheduling.consumer.running import Running
from scheduling.core.outcome import MemoryLimit

MEBIBYTE = 1024 * 1024

LOOK_SECONDS = 1.0
"""How often the memory of the runs is looked at. Between two looks, a run may use more."""


class MemoryWatch:
    """Finds the runs that use more memory than they may."""

    def __init__(self) -> None:
        self._look_at = 0.0

    def exceeded(self, running: Sequence[Running], now: float) -> list[tuple[Running, MemoryLimit]]:
        """These runs, with the reason for their end; empty if the last look was less than `LOOK_SECONDS` ago.

        Args:
            now: the monotonic time.
        """
        limited = {run.pid: run for run in running if run.config.memory_limit and run.pid and run.verdict is None}
        if not limited or now < self._look_at:
            return []
        self._look_at = now + LOOK_SECONDS
        found = []
        for pid, used in resident_bytes([*limited]).items():
            limit, mebibytes = limited[pid].config.memory_limit, used / MEBIBYTE
            if limit and mebibytes > limit:
                found.append((limited[pid], MemoryLimit(limit, mebibytes)))
        return found


def resident_bytes(roots: Collection[int]) -> dict[int, int]:
    """The resident memory of each of these processes together with all processes below it, by process id.

    A process that has ended is left out. On systems other than Linux, the result is empty.
    """
    children, own = defaultdict[int, list[int]](list), dict[int, int]()
    for found in all_processes():
        children[found.parent].append(found.pid)
        own[found.pid] = found.pages
    totals = {}
    for root in roots:
        if root in own:
            tree, used = [root], 0
            while tree:
                pid = tree.pop()
                used += own[pid]
                tree += children.pop(pid, [])
            totals[root] = used * PAGE_BYTES
    return totals
