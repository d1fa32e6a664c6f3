"""`cron output`: what an execution has printed."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from scheduling.management.cron.console import Console
from scheduling.management.cron.exit_codes import Exit
from scheduling.management.cron.follow import print_lines, until_over
from scheduling.management.cron.paging import whole
from scheduling.operations.executions import find
from scheduling.operations.output import Cursor, after, tail
from scheduling.operations.output_filter import CHOICES, Wanted

HELP = "Prints what an execution has printed."
MOST_LINES = 2_000


def add_arguments(parser: ArgumentParser) -> None:
    """The execution, filters, --tail and --follow."""
    parser.add_argument("id", metavar="ID", help="the id of an execution")
    parser.add_argument("--attempt", type=whole(1, 10**9 - 1), metavar="N", help="of this attempt only")
    levels = tuple(level for level, _label in CHOICES if level)
    parser.add_argument("--level", choices=levels, default="", help="the lowest level that is printed")
    parser.add_argument("--search", default="", metavar="TEXT", help="the lines with this text only")
    parser.add_argument("--tail", type=whole(1, MOST_LINES), metavar="N", help="the last lines only")
    parser.add_argument("--after", default="", metavar="CURSOR", help="with --json: go on after this cursor")
    parser.add_argument("--follow", action="store_true", help="go on until the execution is over")


def run(console: Console, options: Mapping[str, Any]) -> int:
    """Print the output."""
    row = find(console.actor(), options["id"])
    wanted = Wanted(options["attempt"], options["level"], options["search"].strip()[:200])
    if console.as_json:
        cursor = Cursor.of(options["after"])
        found = after(row.pk, cursor, wanted) if options["tail"] is None else tail(row.pk, wanted, options["tail"])
        groups = [{"attempt": number, "lines": lines} for number, lines in found.groups]
        console.json("output", execution=row.pk, groups=groups, cursor=str(found.cursor), cut=found.cut)
        return Exit.DONE
    if options["follow"]:
        return until_over(console, row.pk, wanted, follow=True)
    if options["tail"] is None:
        print_lines(console, row.pk, Cursor(), wanted)
        return Exit.DONE
    last = tail(row.pk, wanted, options["tail"])
    for _number, lines in last.groups:
        for line in lines:
            console.say(line)
    if last.cut:
        console.note(_("Earlier lines are left out."))
    return Exit.DONE
