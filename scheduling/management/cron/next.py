"""`cron next`: the next runs of a schedule."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from scheduling.management.cron.console import Console
from scheduling.management.cron.exit_codes import Exit
from scheduling.management.cron.paging import whole
from scheduling.management.cron.schedule_name import READING
from scheduling.operations.next_runs import FEW, MOST, next_runs_shape
from scheduling.operations.schedule_words import zone_of
from scheduling.operations.schedules import find
from scheduling.operations.times import format_minute, relative_time

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
    for at in found.runs:
        console.say(f"{format_minute(at, zone_of(row))}  {relative_time(at)}")
    return Exit.DONE
