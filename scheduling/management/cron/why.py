"""`cron why`: whether a schedule ran at an instant, and why or why not."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from django.utils import timezone as clock
from django.utils.translation import gettext as _

from scheduling.management.cron.console import Console
from scheduling.management.cron.exit_codes import Exit
from scheduling.management.cron.schedule_name import READING
from scheduling.operations.schedule_words import zone_of
from scheduling.operations.schedules import find
from scheduling.operations.times import format_due
from scheduling.operations.why import why
from scheduling.operations.why_shapes import NearShape

HELP = "Says whether a schedule ran at an instant, and why or why not."


def add_arguments(parser: ArgumentParser) -> None:
    """The schedule and the instant."""
    parser.add_argument("name", metavar="SCHEDULE", help=READING)
    when = "03:00, '2026-03-29 02:30' in the zone of the schedule, or 2026-03-29T02:30+02:00"
    parser.add_argument("instant", metavar="INSTANT", nargs="+", help=when)


def run(console: Console, options: Mapping[str, Any]) -> int:
    """Print the answer. A local time that the clocks show twice has two."""
    actor = console.actor()
    row = find(actor, options["name"])
    answers = why(actor, row, " ".join(options["instant"]), clock.now())
    if console.as_json:
        console.json("why", answers=answers)
        return Exit.DONE
    info = zone_of(row)

    def near(word: str, one: NearShape | None) -> None:
        if one is not None:
            run = "" if one.execution is None else _("  execution %(id)s") % {"id": one.execution} + f" {one.state}"
            console.say(f"  {word} {format_due(one.at, info)}{run}")

    for answer in answers:
        console.say(f"{format_due(answer.at, info)}: {answer.text}")
        if answer.note:
            console.say(f"  {answer.note}")
        if answer.execution is not None:
            console.say(f"  {_('execution %(id)s') % {'id': answer.execution}} {answer.state}")
        near(_("Before:"), answer.before)
        near(_("After:"), answer.after)
    return Exit.DONE
