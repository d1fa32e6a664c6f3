"""`cron cancel`: ends an execution that waits or runs."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from scheduling.management.cron.console import Console
from scheduling.management.cron.exit_codes import Exit
from scheduling.operations.executions import cancel, find

HELP = "Ends an execution that waits or runs."


def add_arguments(parser: ArgumentParser) -> None:
    """The execution."""
    parser.add_argument("id", metavar="ID", help="the id of an execution")


def run(console: Console, options: Mapping[str, Any]) -> int:
    """Cancel the execution."""
    actor = console.actor(changes=True)
    row = find(actor, options["id"])
    said = cancel(actor, row.pk)
    if console.as_json:
        console.json("cancelled", execution=row.pk, result=said)
    else:
        console.say(_("It is cancelled.") if said == "cancelled" else _("Its process will end within seconds."))
    return Exit.DONE
