"""`cron resume`: a paused schedule makes new runs again, from now on."""

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

HELP = "Resumes a paused schedule, from now on."


def add_arguments(parser: ArgumentParser) -> None:
    """The schedule."""
    parser.add_argument("name", metavar="SCHEDULE", help=CHANGING)


def run(console: Console, options: Mapping[str, Any]) -> int:
    """Resume the schedule."""
    actor = console.actor(changes=True)
    row = set_active(actor, named_schedule(console, actor, options["name"], options).pk, True)
    tell(console, schedule_shape(actor, row.pk), _("Resumed schedule %(id)s: %(name)s."))
    return Exit.DONE
