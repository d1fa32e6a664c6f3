"""`cron history`: what has changed a schedule, the newest first."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from scheduling.core.text import is_number, visible_text
from scheduling.management.cron.console import Console
from scheduling.management.cron.exit_codes import Exit
from scheduling.management.cron.moments import moment
from scheduling.management.cron.paging import add_paging
from scheduling.management.cron.schedule_name import READING
from scheduling.operations.actor import Actor
from scheduling.operations.refused import Code, Refused
from scheduling.operations.revision_shapes import revisions_in_bulk
from scheduling.operations.revision_words import changes_in_words, names_in, what, who
from scheduling.operations.revisions import revisions_of
from scheduling.operations.schedules import find
from scheduling.operations.shaping import each_usable, page_keys

HELP = "Lists the revisions of a schedule, the newest first: who has changed what, when and why."
VALUE_SHOWN = 60


def add_arguments(parser: ArgumentParser) -> None:
    """The schedule, --limit and --after."""
    parser.add_argument("name", metavar="SCHEDULE", help=f"{READING}; or the id of a deleted one")
    add_paging(parser)


def run(console: Console, options: Mapping[str, Any]) -> int:
    """Print a page of the revisions."""
    actor = console.actor()
    pk = _schedule(actor, options["name"])
    rows = revisions_of(actor, pk)
    keys, following = page_keys(rows, options["after"], options["limit"], descending=True)
    if console.as_json:
        found, unusable = each_usable(keys, lambda some: revisions_in_bulk(actor, pk, some))
        console.json("revisions", revisions=found, unusable=unusable, next=following)
        return Exit.DONE
    revisions = list(rows.filter(pk__in=keys))
    names = names_in(revisions)
    for row in revisions:
        console.say(_("Revision %(number)s: %(what)s") % {"number": row.number, "what": what(row)})
        console.say(f"  {moment(row.at)}  {who(row)}")
        if row.reason:
            console.say(f"  {visible_text(row.reason, 500)}")
        for change in changes_in_words(row, names):
            old, new = (visible_text(value or "-", VALUE_SHOWN) for value in (change.old, change.new))
            console.say(f"  {change.name}: {old} -> {new}")
    if following is not None:
        console.note(_("More with --after %(key)s.") % {"key": following})
    return Exit.DONE


def _schedule(actor: Actor, text: str) -> int:
    """The id of the schedule.

    Raises:
        Refused: FORBIDDEN, NOT_FOUND or AMBIGUOUS.
    """
    try:
        return find(actor, text).pk
    except Refused as refused:
        if refused.code != Code.NOT_FOUND or not is_number(text):
            raise
        if not revisions_of(actor, int(text)).exists():
            raise
        return int(text)
