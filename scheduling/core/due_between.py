"""Which instants are due by a stored state of a schedule. The audit of occurrences has no other source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from scheduling.core.cron import parse
from scheduling.core.instants import instants_between
from scheduling.core.zones import require_aware

_TICK = timedelta(microseconds=1)


def due_between(state: Mapping[str, Any], tz: str, after: datetime, until: datetime) -> Iterator[datetime]:
    """The instants in (after, until] at which a schedule with this state is due, ascending, in UTC.

    Whether the schedule is paused does not matter. An instant that a calendar excludes is among them: a skipped
    execution records it.

    Args:
        state: the state of a `core.revisions.Snapshot`.
        tz: the zone in which the schedule runs.

    Raises:
        ValueError: the state has no times that can be used (CronError, ZoneError), or an instant is naive.
    """
    after, until = require_aware(after), require_aware(until)
    if (since := state.get("active_from")) is not None:
        after = max(after, _instant(since) - _TICK)
    if (end := state.get("active_until")) is not None:
        until = min(until, _instant(end))
    if (date := state.get("date_time")) is not None:
        instant = _instant(date)
        if after < instant <= until:
            yield instant
        return
    yield from instants_between(parse(str(state.get("schedule") or "")), tz, after, until)


def _instant(text: Any) -> datetime:
    return require_aware(datetime.fromisoformat(text)).astimezone(UTC)
