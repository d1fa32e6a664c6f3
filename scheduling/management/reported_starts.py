"""Knows whether each producer and consumer that `up` has started is at work."""

from __future__ import annotations

import socket
from collections.abc import Callable, Collection

from django.utils import timezone as clock

from scheduling.management.background_look import BackgroundLook
from scheduling.models import Process

SECONDS = 0.25
"""The seconds between two looks into the database, until all are at work."""


def all_reported(pids: Collection[int]) -> bool:
    """Whether each process of this host with one of these ids has reported to the database what it does."""
    rows = Process.objects.alive(clock.now()).filter(host=socket.gethostname(), pid__in=pids)
    return {pid for pid, info in rows.values_list("pid", "info") if info} == set(pids)


class ReportedStarts(BackgroundLook):
    """Looks until all have reported once. A process that ends later does not matter.

    Args:
        pids: returns the process ids of the producers and consumers; fewer than `count` while not all are started.
        count: how many producers and consumers there are.
    """

    def __init__(self, pids: Callable[[], Collection[int]], count: int) -> None:
        super().__init__(self._missing, SECONDS, "reported-starts")
        self._pids, self._count = pids, count
        self._all = False

    def __call__(self) -> bool:
        """Whether all have reported."""
        return self._all

    def _missing(self) -> bool:
        pids = self._pids()
        self._all = len(pids) == self._count and all_reported(pids)
        return not self._all
