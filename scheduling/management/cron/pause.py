"""`cron pause`: a schedule makes no new runs until it is resumed."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from scheduling.management.cron.console import Console
from scheduling.management.cron.exit_codes import Exit
from scheduling.management.cron.schedule_name import CHANGING, named_schedule
from scheduling.management.cron.schedule_sight import tell
from scheduling.operations.schedule_state import set_active
from scheduling.operations.shaping import schedule_shape

HELP = "Pauses a schedule. Runs that have begun go on."


def add_arguments(parser: ArgumentParser) -> None:
    """The schedule, and --reason."""
    parser.add_argument("name", metavar="SCHEDULE", help=CHANGING)
    parser.add_argument("--reason", default="", help="shown to your colleagues")


def run(console: Console, options: Mapping[str, Any]) -> int:
    """Pause the schedule."""
    actor = console.actor(changes=True)
    found = named_schedule(console, actor, options["name"], options)
    row = set_active(actor, found.pk, False, options["reason"])
    said = _("Paused schedule %(id)s: %(name)s.")
    if not found.status:
        said = _("Schedule %(id)s was paused already: %(name)s. Its reason is unchanged.")
    tell(console, schedule_shape(actor, row.pk), said)
    return Exit.DONE
