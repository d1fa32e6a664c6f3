"""A schedule as the command shows it."""

from __future__ import annotations

import json
from datetime import datetime

from django.utils.translation import gettext as _

from scheduling.core.known_sentences import in_language
from scheduling.handlers.targets import handler_of
from scheduling.management.cron.console import Console
from scheduling.management.cron.moments import due_moment, moment
from scheduling.management.cron.words import health, state
from scheduling.models import Scheduler
from scheduling.models.after import SPANS
from scheduling.models.own_timing import PLAIN
from scheduling.models.time_words import format_duration
from scheduling.operations.schedule_words import zone_named
from scheduling.operations.shapes import ScheduleShape

OWN = (
    "calendar", "overlap", "queue", "priority", "time_limit", "language", "max_retries", "retry_delay_ms",
    "retry_multiplier", "retry_max_delay_ms", "retry_jitter", "keep_success_days",
    "keep_failed_days", "keep_output_days", "keep_count",
    "start_within_seconds", "max_runs", "pause_after_failures", "user", "group", "source_file", "plan_error",
)  # fmt: skip
"""The columns that are shown by their names, if they have a value."""


def show_schedule(console: Console, row: ScheduleShape) -> None:
    """Write the values of a schedule, one in a line."""
    last, zone = row.last_run, zone_named(row.timezone)
    pairs: list[tuple[str, object]] = [
        (_("id"), row.id),
        (_("name"), row.name),
        (_("description"), row.description),
        (_("when"), row.schedule or moment(row.date_time, zone)),
        (_("zone"), row.timezone),
        (_("target"), f"{row.target.name} ({row.target.type})"),
        (_("params"), json.dumps(row.params, ensure_ascii=False) if row.params else ""),
        (_("health"), health(row.health)),
        (_("next run"), due_moment(row.next_run_at, zone) if row.status else _("paused")),
        (_("paused"), "" if row.status else " ".join(filter(None, [moment(row.paused_at), row.paused_by]))),
        (_("reason"), "" if row.status else in_language(row.pause_reason)),
        (_("last run"), "" if last is None else f"{last.id} {state(last.state).text}"),
        (_("service"), _("yes") if row.stay_alive else ""),
        (_("after"), _after(row)),
    ]
    timing = [(name, value) for name, plain in PLAIN.items() if (value := getattr(row, name)) != plain]
    shown = [(name, moment(value, zone) if isinstance(value, datetime) else value) for name, value in timing]
    console.facts(pairs + shown + [(name, getattr(row, name)) for name in OWN])


def _after(row: ScheduleShape) -> str:
    if row.after is None:
        return ""
    facts = {"name": row.after, "span": SPANS.get(row.after_span, row.after_span), "late": row.after_late}
    facts["time"] = format_duration(row.after_within_seconds)
    return _("%(name)s (%(span)s; waits at most %(time)s, then: %(late)s)") % facts


def tell(console: Console, row: ScheduleShape, said: str) -> None:
    """Write a sentence about a changed schedule, or the schedule as JSON."""
    if console.as_json:
        console.json("schedule", schedule=row)
    else:
        console.say(said % {"name": row.name or row.description or row.id, "id": row.id})


def note_unknown_code(console: Console, row: Scheduler) -> None:
    """Warn that params were stored unchecked, because this process does not know the code of the target."""
    if handler_of(row) is None:
        said = _("The code of %(target)s is not known here, so its parameters were not checked.")
        console.note(said % {"target": row.target})
