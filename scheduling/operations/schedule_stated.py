"""What a schedule file says about one schedule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from django.utils.dateparse import parse_datetime

from scheduling.conf import get_conf
from scheduling.core.cron import resolve_wall
from scheduling.core.targets import TARGET_KINDS, TARGETS
from scheduling.handlers import Handler
from scheduling.handlers.targets import handler_named


@dataclass(frozen=True)
class Stated:
    """What a file says about a schedule.

    Args:
        values: a value for each of `schedule_entry.FIELDS`. The params hold no secret.
        secrets: the names of the secret params that are set.
        has_pause: whether the values of `schedule_entry.PAUSE` are meant.
        has_ping: whether the value of `ping_url` is meant. It is empty if the URL is a secret.
    """

    values: Mapping[str, Any]
    secrets: tuple[str, ...] = field(default=())
    has_pause: bool = True
    has_ping: bool = True

    @property
    def name(self) -> str:
        """The name of the schedule."""
        return str(self.values["name"])

    @property
    def target(self) -> dict[str, Any]:
        """The type and the name of each target that is given."""
        return {type_: self.values[type_] for type_ in TARGETS if self.values[type_]}

    @property
    def zone_name(self) -> str:
        """The zone of the times, or the default of the settings."""
        return str(self.values["timezone"] or get_conf().timezone)

    @property
    def date(self) -> datetime | None:
        """The date and time; see `instant`."""
        return self.instant("date_time")

    def instant(self, name: str) -> datetime | None:
        """An instant in UTC; None without one, or if it cannot be read. Without an offset it is a local time."""
        try:
            found = parse_datetime(self.values[name] or "")
            if found is not None:
                found = resolve_wall(found, self.zone_name) if found.tzinfo is None else found.astimezone(UTC)
        except (ValueError, OverflowError):
            return None
        return found

    @property
    def times(self) -> tuple[Any, ...]:
        """The expression, the date and the zone, for a comparison."""
        return (*self.values["schedule"].split(), self.date, self.zone_name)

    def is_over(self, now: datetime) -> bool:
        """Whether the schedule has one date, which has passed."""
        return self.date is not None and self.date <= now

    def handler(self) -> Handler | None:
        """The handler of the target; None if it is not registered in this process."""
        for type_, name in self.target.items():
            return handler_named(type_, TARGET_KINDS[type_].handler or name)
        return None
