"""Says in words what the rules of a schedule mean: spread, missed runs, bounds."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta, tzinfo

from django.utils import timezone as clock
from django.utils.translation import gettext as _

from scheduling.admin.ui.times import format_instant
from scheduling.conf import get_conf
from scheduling.core.cron import ZoneError, zone
from scheduling.core.spread_offset import SpreadOffset
from scheduling.core.timing import USUALLY_CAUGHT_UP, MissedRuns
from scheduling.models import Scheduler
from scheduling.models.own_timing import timing_errors
from scheduling.models.time_words import format_span


def timing_words(row: Scheduler, now: datetime | None = None) -> Iterator[tuple[str, str]]:
    """The name of each rule that is not the usual one, and a sentence about it. Nothing if a rule cannot be used."""
    if timing_errors(row):
        return
    if row.spread_seconds:
        yield _("Spread"), _spread(row)
    if row.missed_runs != MissedRuns.LATEST.value or row.missed_within_seconds is not None:
        yield _("Missed runs"), _missed(row)
    try:
        info = zone(row.zone_name)
    except ZoneError:
        info = zone("UTC")
    if row.active_from is not None or row.active_until is not None:
        yield _("Active"), _bounds(row, info, now or clock.now())


def _spread(row: Scheduler) -> str:
    facts = {"window": format_span(row.spread_seconds or 0)}
    if row.spread_each:
        return _("Spread over %(window)s: each run starts by another offset after its time.") % facts
    if row.pk is None:
        return _("Spread over %(window)s: it starts by a fixed offset after each time.") % facts
    offset = SpreadOffset(row.pk, timedelta(seconds=row.spread_seconds or 0)).stable
    facts["offset"] = _exactly(int(offset.total_seconds()))
    return _("Spread over %(window)s: this schedule starts %(offset)s after each time.") % facts


def _missed(row: Scheduler) -> str:
    seconds = row.missed_within_seconds if row.missed_within_seconds is not None else get_conf().catch_up_seconds
    facts = {"span": format_span(seconds), "count": row.missed_cap or USUALLY_CAUGHT_UP}
    if row.missed_runs == MissedRuns.NONE.value:
        return _("What no producer has started within a minute does not run.")
    if row.missed_runs == MissedRuns.ALL.value:
        if row.runs_alone:
            return (
                _("It runs alone, so only the latest missed run is caught up, if it is at most %(span)s old.") % facts
            )
        return _("All missed runs are caught up that are at most %(span)s old, the newest %(count)s of them.") % facts
    return _("The latest missed run is caught up, if it is at most %(span)s old.") % facts


def _bounds(row: Scheduler, info: tzinfo, now: datetime) -> str:
    since = format_instant(row.active_from, info) if row.active_from is not None else ""
    until = format_instant(row.active_until, info) if row.active_until is not None else ""
    if row.active_until is not None and row.active_until <= now:
        return _("It has ended: it was active until %(until)s.") % {"until": until}
    if since and until:
        return _("It runs from %(since)s until %(until)s.") % {"since": since, "until": until}
    if since:
        return _("It runs from %(since)s on.") % {"since": since}
    return _("It runs until %(until)s.") % {"until": until}


def _exactly(seconds: int) -> str:
    """A length of time to the second: `7 min 12 s`."""
    hours, rest = divmod(seconds, 3600)
    parts = [(hours, "h"), (rest // 60, "min"), (rest % 60, "s")]
    return " ".join(f"{number} {unit}" for number, unit in parts if number) or "0 s"
