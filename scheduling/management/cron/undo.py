"""`cron undo`: takes back one revision of a schedule."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from scheduling.core.text import visible_text
from scheduling.management.cron.change_reason import add_reason, reason_of
from scheduling.management.cron.console import Console
from scheduling.management.cron.exit_codes import Exit
from scheduling.management.cron.paging import whole
from scheduling.management.cron.schedule_name import CHANGING, named_schedule
from scheduling.management.cron.schedule_sight import tell
from scheduling.operations.revision_words import key_word
from scheduling.operations.revisions import restore_of, reverse, undo_of
from scheduling.operations.shaping import schedule_shape

HELP = "Undoes a revision of a schedule, or restores the state that it has left. The result is a new revision."


def add_arguments(parser: ArgumentParser) -> None:
    """The schedule, the number, --restore and --reason."""
    parser.add_argument("name", metavar="SCHEDULE", help=CHANGING)
    parser.add_argument("number", metavar="NUMBER", type=whole(1), help="the revision, as `cron history` shows it")
    restore = "make the schedule as the revision has left it, instead of undoing what it has changed"
    parser.add_argument("--restore", action="store_true", help=restore)
    add_reason(parser)


def run(console: Console, options: Mapping[str, Any]) -> int:
    """Undo the revision."""
    actor = console.actor(changes=True)
    row = named_schedule(console, actor, options["name"], options)
    found = (restore_of if options["restore"] else undo_of)(actor, row.pk, options["number"])
    reverse(actor, found, reason_of(options))
    if found.unknown:
        names = visible_text(", ".join(map(key_word, found.unknown)), 300)
        said = _("These keep their present values, because no revision holds secrets: %(names)s.")
        console.note(said % {"names": names})
    tell(console, schedule_shape(actor, row.pk), _("Changed schedule %(id)s back: %(name)s."))
    return Exit.DONE
