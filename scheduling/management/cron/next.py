"""`cron next`: the next runs of a schedule."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping
from datetime import tzinfo
from typing import Any

from django.utils.translation import gettext as _

from scheduling.management.cron.console import Console
from scheduling.management.cron.exit_codes import Exit
from scheduling.management.cron.paging import whole
from scheduling.management.cron.schedule_name import READING
from scheduling.operations.next_run_shapes import OccurrenceShape
from scheduling.operations.next_runs import FEW, MOST, next_runs_shape
from scheduling.operations.schedule_words import zone_of
from scheduling.operations.schedules import find
from scheduling.operations.times import format_due, relative_time

HELP = "Tells the next runs of a schedule, in its zone."


def add_arguments(parser: ArgumentParser) -> None:
    """The schedule, and --count."""
    parser.add_argument("name", metavar="SCHEDULE", help=READING)
    parser.add_argument("--count", type=whole(1, MOST), default=FEW, help=f"1 to {MOST} (default: {FEW})")


def run(console: Console, options: Mapping[str, Any]) -> int:
    """Print the runs, one in a line."""
    row = find(console.actor(), options["name"])
    found = next_runs_shape(row, options["count"])
    if console.as_json:
        console.json("next_runs", next_runs=found)
        return Exit.NOT_DONE if found.problem else Exit.DONE
    if found.problem:
        console.note(found.problem)
        return Exit.NOT_DONE
    console.note(found.words)
    if not found.is_active:
        console.note(_("It is paused: these would be its next runs."))
    if not found.runs:
        console.note(_("It has no run to come."))
    for one in found.occurrences:
        console.say(_of_rules(one, zone_of(row)))
    for at in found.runs if not found.occurrences else ():
        console.say(f"{format_due(at, zone_of(row))}  {relative_time(at)}")
    return Exit.DONE


def _of_rules(one: OccurrenceShape, info: tzinfo) -> str:
    """An occurrence with its nominal time and its start, or with the reason why it does not run."""
    at = format_due(one.at, info)
    if one.starts_at is None:
        said = _("%(at)s  does not run (%(count)s until the calendar allows it): %(reason)s")
        return said % {"at": at, "count": one.count or "∞", "reason": one.reason}
    start = _("starts at %(start)s") % {"start": f"{one.starts_at.astimezone(info):%Y-%m-%d %H:%M:%S}"}
    return f"{at}  {relative_time(one.starts_at)}" + (f"  {start}" if one.starts_at != one.at else "")
