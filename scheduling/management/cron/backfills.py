"""`cron backfills`: lists backfills, and pauses, resumes or cancels one."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable, Mapping
from typing import Any

from django.utils.translation import gettext as _

from scheduling.core.text import one_line
from scheduling.management.cron.console import Console
from scheduling.management.cron.exit_codes import Exit
from scheduling.management.cron.paging import whole
from scheduling.models import Backfill
from scheduling.operations import backfills
from scheduling.operations.actor import Actor
from scheduling.operations.backfill_shapes import BackfillShape, backfills_in_bulk
from scheduling.operations.shaping import page_keys

HELP = "Lists backfills, the newest first, or pauses, resumes or cancels one."
ACTS: dict[str, Callable[[Actor, int], Backfill]] = {
    "pause": backfills.pause,
    "resume": backfills.resume,
    "cancel": backfills.cancel,
}


def add_arguments(parser: ArgumentParser) -> None:
    """What is done to which backfill; nothing: list them."""
    act = parser.add_mutually_exclusive_group()
    for name in ACTS:
        act.add_argument(f"--{name}", type=whole(1, 2**63 - 1), metavar="ID", help=f"{name} this backfill")
    parser.add_argument("--limit", type=whole(1, 200), default=20, help="list so many (default: 20)")


def run(console: Console, options: Mapping[str, Any]) -> int:
    """Do it, then print the backfill; or print the list."""
    wanted = next((name for name in ACTS if options[name] is not None), None)
    actor = console.actor(changes=wanted is not None)
    if wanted is not None:
        keys = [ACTS[wanted](actor, options[wanted]).pk]
    else:
        keys, _following = page_keys(backfills.seen(actor), None, options["limit"], descending=True)
    found = backfills_in_bulk(actor, keys)
    if console.as_json:
        console.json("backfills", backfills=[found[pk] for pk in keys])
        return Exit.DONE
    for pk in keys:
        console.say(_line(found[pk]))
    if not keys:
        console.note(_("There is no backfill."))
    return Exit.DONE


def _line(row: BackfillShape) -> str:
    name = one_line(row.schedule) if row.schedule is not None else _("a deleted schedule")
    said = _("%(id)s  %(state)s  %(position)s of %(total)s, %(created)s made  %(name)s")
    facts = {"id": row.id, "state": row.state, "position": row.position, "total": row.total, "created": row.created}
    return said % {**facts, "name": name} + (f"  {one_line(row.note)}" if row.note else "")
