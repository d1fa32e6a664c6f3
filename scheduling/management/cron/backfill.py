"""`cron backfill`: lets a schedule run afterwards for the instants of a range."""

from __future__ import annotations

import uuid
from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from django.utils import timezone as clock
from django.utils.translation import gettext as _

from scheduling.core.backfill import PER_MINUTE, USUAL_PER_MINUTE, Options, Standing
from scheduling.management.cron.console import Console
from scheduling.management.cron.exit_codes import Exit
from scheduling.management.cron.paging import whole
from scheduling.management.cron.schedule_name import CHANGING, named_schedule
from scheduling.operations import backfills
from scheduling.operations.backfill_plan import BackfillPlan, plan, typed_range, warnings
from scheduling.operations.backfill_shapes import backfill_shape, plan_shape
from scheduling.operations.schedule_words import zone_of
from scheduling.operations.times import format_minute

HELP = "Lets a schedule run afterwards for the instants of a range that have no run."


def add_arguments(parser: ArgumentParser) -> None:
    """The schedule, the range, and how the runs are made."""
    parser.add_argument("name", metavar="SCHEDULE", help=CHANGING)
    parser.add_argument("--from", dest="since", required=True, metavar="TIME", help="in the schedule's zone; or a date")
    parser.add_argument("--until", required=True, metavar="TIME", help="belongs to the range; a date is the whole day")
    parser.add_argument("--dry-run", action="store_true", help="only list the instants")
    parser.add_argument("--newest-first", action="store_true", help="the latest instant runs first")
    parser.add_argument(
        "--per-minute", type=whole(*PER_MINUTE), default=USUAL_PER_MINUTE, metavar="N",
        help=f"so many runs in a minute (default: {USUAL_PER_MINUTE})",
    )  # fmt: skip
    parser.add_argument("--ignore-overlap", action="store_true", help="do not wait for the runs before")
    parser.add_argument("--also-ran", action="store_true", help="also instants that the schedule has run by itself")
    parser.add_argument("--reason", default="", help="shown to your colleagues")


def run(console: Console, options: Mapping[str, Any]) -> int:
    """List the instants, or start the backfill."""
    actor = console.actor(changes=not options["dry_run"])
    actor.must(backfills.BACKFILL)
    row, now = named_schedule(console, actor, options["name"], options), clock.now()
    how = Options(
        options["newest_first"], options["per_minute"], not options["ignore_overlap"], options["also_ran"],
        " ".join(options["reason"].split()),
    )  # fmt: skip
    found = plan(actor, row, *typed_range(row, options["since"], options["until"], now), how, now)
    if options["dry_run"]:
        return _listed(console, found)
    (made,) = backfills.start(actor, [found], how, uuid.uuid4()).rows
    if console.as_json:
        console.json("backfill", backfill=backfill_shape(actor, made.pk))
        return Exit.DONE
    console.say(_("Backfill %(id)s: %(counts)s") % {"id": made.pk, "counts": _counts(found)})
    return Exit.DONE


def _listed(console: Console, found: BackfillPlan) -> int:
    if console.as_json:
        console.json("backfill_plan", plan=plan_shape(found))
        return Exit.DONE
    info = zone_of(found.schedule)
    for said in warnings(found):
        console.note(said)
    for at, standing, row in found.lines():
        recorded = "" if row is None else f"  execution {row.pk}, {row.state}"
        console.say(f"{format_minute(at, info)}  {standing.value}{recorded}")
    console.say(_counts(found) + " " + _("Nothing was done."))
    return Exit.DONE


def _counts(found: BackfillPlan) -> str:
    counts = found.counts
    said = _("%(new)s to run, %(ran)s have run, %(made)s were made by an earlier backfill.")
    return said % {standing.value: counts[standing] for standing in Standing}
