"""`cron edit`: other values for a schedule."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from django.utils import timezone as clock
from django.utils.translation import gettext as _

from scheduling.handlers.secret_params import masked
from scheduling.handlers.targets import handler_of
from scheduling.management.cron.change_reason import add_reason, reason_of
from scheduling.management.cron.changes import told
from scheduling.management.cron.console import Console
from scheduling.management.cron.exit_codes import Exit
from scheduling.management.cron.schedule_name import CHANGING, named_schedule
from scheduling.management.cron.schedule_sight import note_unknown_code, tell
from scheduling.management.cron.value_options import add_values, read_values
from scheduling.operations.refused import Refused
from scheduling.operations.schedules import change, version
from scheduling.operations.shaping import schedule_shape
from scheduling.operations.time_machine import preview

HELP = "Changes values of a schedule. What is not given stays as it is; --param changes single parameters."


def add_arguments(parser: ArgumentParser) -> None:
    """The schedule, --expect, --dry-run, the values, and --reason."""
    parser.add_argument("target_schedule", metavar="SCHEDULE", help=CHANGING)
    expect = "change it only if it still has this version, as `show --json` tells"
    parser.add_argument("--expect", metavar="VERSION", help=expect)
    parser.add_argument("--dry-run", action="store_true", help="only tell the next runs before and after, and the load")
    add_values(parser)
    add_reason(parser)


def run(console: Console, options: Mapping[str, Any]) -> int:
    """Change the schedule. A change by another person between reading and writing is not overwritten."""
    actor = console.actor(changes=True)
    row = named_schedule(console, actor, options["target_schedule"], options)
    values = read_values(options, masked(handler_of(row), row.params))
    if not values:
        raise Refused.value("", _("Give at least one value, such as --schedule or --set."), "required")
    if options["dry_run"]:
        return told(console, row, preview(actor, row.pk, values, clock.now()))
    row = change(actor, row.pk, values, options["expect"] or version(row), reason=reason_of(options))
    tell(console, schedule_shape(actor, row.pk), _("Changed schedule %(id)s: %(name)s."))
    note_unknown_code(console, row)
    return Exit.DONE
