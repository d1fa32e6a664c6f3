"""`cron add`: a new schedule."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from scheduling.management.cron.change_reason import add_reason, reason_of
from scheduling.management.cron.console import Console
from scheduling.management.cron.exit_codes import Exit
from scheduling.management.cron.schedule_sight import note_unknown_code, tell
from scheduling.management.cron.value_options import add_values, read_values
from scheduling.operations.schedules import make
from scheduling.operations.shaping import schedule_shape

HELP = "Makes a schedule."


def add_arguments(parser: ArgumentParser) -> None:
    """The values of the schedule, and --reason."""
    add_values(parser)
    add_reason(parser)


def run(console: Console, options: Mapping[str, Any]) -> int:
    """Make the schedule."""
    actor = console.actor(changes=True)
    row = make(actor, read_values(options), reason=reason_of(options))
    tell(console, schedule_shape(actor, row.pk), _("Made schedule %(id)s: %(name)s."))
    note_unknown_code(console, row)
    return Exit.DONE
