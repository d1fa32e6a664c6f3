"""`cron list`: the schedules."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping
from functools import partial
from typing import Any

from django.utils.translation import gettext as _

from scheduling.core.health import Health
from scheduling.core.targets import TARGETS
from scheduling.management.cron.checked import checked
from scheduling.management.cron.console import Console
from scheduling.management.cron.exit_codes import Exit
from scheduling.management.cron.moments import due_moment, moment
from scheduling.management.cron.paging import add_paging
from scheduling.management.cron.table import Cell
from scheduling.management.cron.words import health, state
from scheduling.operations.schedule_filter import ScheduleFilter, filtered_schedules
from scheduling.operations.schedule_words import zone_named
from scheduling.operations.shapes import ScheduleShape
from scheduling.operations.shaping import each_usable, page_keys, schedules_in_bulk

HELP = "Lists the schedules."


def add_arguments(parser: ArgumentParser) -> None:
    """The filters, --limit and --after."""
    parser.add_argument("words", nargs="*", metavar="WORD", help="in the name, description, cron expression or target")
    parser.add_argument("--status", choices=("active", "paused"))
    parser.add_argument("--type", choices=TARGETS, help="the type of the target")
    parser.add_argument("--health", choices=tuple(str(health) for health in Health))
    parser.add_argument("--group", help="the name of a group; '' for the schedules without a group")
    add_paging(parser)


def run(console: Console, options: Mapping[str, Any]) -> int:
    """Print a page of the schedules, in the order of their ids."""
    actor, status = console.actor(), options["status"]
    wanted = checked(
        ScheduleFilter, status=None if status is None else status == "active", type=options["type"],
        health=options["health"], group=options["group"], q=" ".join(options["words"]),
    )  # fmt: skip
    rows = filtered_schedules(actor, wanted)
    keys, following = page_keys(rows, options["after"], options["limit"], descending=False)
    found, unusable = each_usable(keys, partial(schedules_in_bulk, actor))
    if console.as_json:
        console.json("schedules", schedules=found, unusable=unusable, next=following)
        return Exit.DONE
    columns = [_("ID"), _("Schedule"), _("When"), _("Target"), _("Health"), _("Next run"), _("Last run")]
    if found:
        console.table(columns, [_row(row) for row in found])
    else:
        console.note(_("No schedule matches."))
    for bad in unusable:
        console.note(_("%(id)s cannot be read: %(error)s") % {"id": bad.id, "error": bad.unusable})
    if following is not None:
        console.note(_("There are more: --after %(id)s") % {"id": following})
    return Exit.DONE


def _row(row: ScheduleShape) -> list[object]:
    last, zone = row.last_run, zone_named(row.timezone)
    return [
        row.id,
        row.name or row.description or "-",
        row.schedule or moment(row.date_time, zone),
        row.target.name,
        health(row.health),
        due_moment(row.next_run_at, zone) if row.status else Cell(_("paused"), "quiet"),
        state(last.state) if last is not None else "-",
    ]
