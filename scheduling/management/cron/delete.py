"""`cron delete`: removes a schedule."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from scheduling.management.cron.change_reason import add_reason, reason_of
from scheduling.management.cron.console import Console
from scheduling.management.cron.exit_codes import Exit
from scheduling.management.cron.schedule_name import CHANGING, named_schedule
from scheduling.operations.refused import Code, Refused
from scheduling.operations.schedules import delete, version

HELP = "Deletes a schedule. Its executions stay."


def add_arguments(parser: ArgumentParser) -> None:
    """The schedule, --yes and --reason."""
    parser.add_argument("name", metavar="SCHEDULE", help=CHANGING)
    parser.add_argument("--yes", action="store_true", help="do not ask; needed without a terminal")
    add_reason(parser)


def run(console: Console, options: Mapping[str, Any]) -> int:
    """Ask, and delete the schedule."""
    actor = console.actor(changes=True)
    row = named_schedule(console, actor, options["name"], options)
    pk, facts = row.pk, {"id": row.pk, "name": row.name or row}
    if not options["yes"] and not console.confirm(_("Delete schedule %(id)s: %(name)s?") % facts):
        said = _("Nothing was deleted. Give --yes to delete schedule %(id)s: %(name)s.") % facts
        console.refused(Refused(Code.INVALID, said))
        return Exit.NOT_DONE
    delete(actor, pk, version(row), reason=reason_of(options))
    if console.as_json:
        console.json("deleted", id=pk)
    else:
        console.say(_("Deleted schedule %(id)s: %(name)s.") % facts)
    return Exit.DONE
