"""`cron calendars`: the calendars, or one of them."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from scheduling.management.cron.console import Console
from scheduling.management.cron.exit_codes import Exit
from scheduling.management.cron.moments import moment
from scheduling.management.cron.paging import add_paging
from scheduling.management.cron.table import Cell
from scheduling.operations.calendar_shapes import CalendarDetail
from scheduling.operations.calendars import calendar_detail, calendars_in_bulk, find, seen
from scheduling.operations.schedule_words import zone_named
from scheduling.operations.shaping import each_usable, page_keys

HELP = "Lists the calendars, or shows one of them and what it excludes next."


def add_arguments(parser: ArgumentParser) -> None:
    """The calendar, --limit and --after."""
    parser.add_argument("name", nargs="?", metavar="CALENDAR", help="its id or its whole name")
    add_paging(parser)


def run(console: Console, options: Mapping[str, Any]) -> int:
    """Print a page of the calendars, or one calendar."""
    if options["name"] is not None:
        shape = calendar_detail(find(console.actor(), options["name"]))
        return _show(console, shape)
    keys, following = page_keys(seen(console.actor()), options["after"], options["limit"], descending=False)
    found, unusable = each_usable(keys, calendars_in_bulk)
    if console.as_json:
        console.json("calendars", calendars=found, unusable=unusable, next=following)
        return Exit.DONE
    columns = [_("ID"), _("Calendar"), _("Zone"), _("Group"), _("State")]
    if found:
        rows = [
            [
                row.id,
                row.name,
                row.timezone,
                row.group or "-",
                Cell(row.problem, "bad") if row.problem else _("in order"),
            ]
            for row in found
        ]
        console.table(columns, rows)
    else:
        console.note(_("There is no calendar."))
    for bad in unusable:
        console.note(_("%(id)s cannot be read: %(error)s") % {"id": bad.id, "error": bad.unusable})
    if following is not None:
        console.note(_("There are more: --after %(id)s") % {"id": following})
    return Exit.DONE


def _show(console: Console, row: CalendarDetail) -> int:
    if console.as_json:
        console.json("calendar", calendar=row)
        return Exit.DONE
    pairs = [(_("id"), row.id), (_("name"), row.name), (_("description"), row.description), (_("zone"), row.timezone)]
    console.facts([*pairs, (_("group"), row.group), (_("problem"), row.problem)])
    for line in row.entries.split("\n"):
        console.say(line)
    zone = zone_named(row.timezone)
    for one in row.exclusions:
        until = _("never") if one.until is None else moment(one.until, zone)
        console.say(f"{moment(one.start, zone)} .. {until}  {'; '.join(one.reasons)}")
    return Exit.DONE
