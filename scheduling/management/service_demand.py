"""Knows how many services there are, so that `up` can run a standalone consumer for them."""

from __future__ import annotations

from collections.abc import Sequence

from django.utils import timezone as clock

from scheduling.core.lifecycle import OPEN_STATES
from scheduling.management.background_look import BackgroundLook
from scheduling.models import SchedulerExecution
from scheduling.monitoring.findings.watched import services as active_services

SECONDS = 2.0
"""The seconds between two looks into the database."""

MOST = 256
"""No consumer has more slots. Further services wait, and the dashboard says so."""


def services() -> int:
    """How many services run, or would run if a consumer were there."""
    standalone = SchedulerExecution.Queue.STANDALONE.value
    active = active_services(clock.now()).values_list("pk", flat=True)[:MOST]
    waiting = SchedulerExecution.objects.in_state(*OPEN_STATES).filter(queue=standalone)
    # A service with a date is paused after its only occurrence, but its run goes on.
    others = waiting.exclude(scheduler__in=list(active)).order_by()[:MOST]
    return min(len(active) + others.count(), MOST)


class ServiceDemand(BackgroundLook):
    """Looks every `SECONDS` how many services there are."""

    def __init__(self) -> None:
        super().__init__(self._count, SECONDS, "service-demand")
        self._number = 0

    def arguments(self) -> Sequence[str] | None:
        """The arguments that give a consumer a slot for each service; None if there is no service.

        A consumer that has more slots than there are services keeps them, so that no service is interrupted.
        """
        return [f"--concurrency={self._number}"] if self._number else None

    def _count(self) -> bool:
        number = services()
        self._number = max(number, self._number) if number else 0
        return True
