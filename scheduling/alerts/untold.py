"""Finds the open alerts that no channel was told of."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from scheduling.alerts.reading import readable
from scheduling.alerts.repeated import RepeatedQuery, as_they_are
from scheduling.core.alert_rules import RuleKind
from scheduling.models import Alert
from scheduling.models.mutes import not_muted

MOST_LOOKED_AT = 20_000
"""An evaluation looks at so many of the oldest untold alerts, and at so many of those that follow."""

ROUTED = ("pk", "rule", "severity", "group")
"""The columns that say which channels are told."""

Routed = tuple[Any, ...]


def untold_at(now: datetime) -> QuerySet[Alert]:
    """The untold alerts that are not muted, the oldest first."""
    return Alert.objects.filter(not_muted(now), not_muted(now, "rule__"), ended_at=None, told_at=None).order_by("pk")


def untold_holds_at(now: datetime) -> QuerySet[Alert]:
    """Those of them that are about a hold."""
    return untold_at(now).filter(kind=RuleKind.HOLD.value)


class UntoldAlerts:
    """The untold alerts that one evaluation after the other looks at.

    No channel may want the oldest ones. Each evaluation looks at them, and goes on with the others where the one before
    it has stopped, so that every alert has its turn.

    Args:
        build: the alerts at an instant, ordered by their keys.
        most: see `MOST_LOOKED_AT`.
    """

    def __init__(self, build: Callable[[datetime], QuerySet[Alert]], most: int = MOST_LOOKED_AT) -> None:
        self._build, self._most = build, most
        self._oldest = RepeatedQuery(build, ROUTED, most, as_they_are)
        self._looked_up_to = 0

    def rows(self, now: datetime) -> list[Routed]:
        """The columns `ROUTED` of the alerts that this evaluation looks at.

        Raises:
            django.db.DatabaseError: the database cannot be reached.
        """
        oldest, bad = self._oldest.rows_and_bad(now)
        if len(oldest) + len(bad) < self._most:
            return oldest
        after = max(self._looked_up_to, *(row[0] for row in oldest), *bad)
        others = readable(self._build(now).filter(pk__gt=after), self._most, ROUTED)
        self._looked_up_to = others[-1][0] if others else 0
        return oldest + others
