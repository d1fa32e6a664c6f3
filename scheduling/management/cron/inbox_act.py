"""What `republish` and `discard` share: the dry run, the count, and further passes until nothing is left."""

from __future__ import annotations

import shlex
from argparse import ArgumentParser
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from django.db import DatabaseError, InterfaceError
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from scheduling.management.cron.console import Console
from scheduling.management.cron.exit_codes import Exit
from scheduling.management.cron.failure_options import add_conditions, given_conditions, read_selection
from scheduling.management.cron.paging import whole
from scheduling.management.cron.schedule_name import needs_exact_name
from scheduling.operations.actor import Actor
from scheduling.operations.away import database_away
from scheduling.operations.batches import passes_of
from scheduling.operations.failure_selection import MOST_IDS, Selection
from scheduling.operations.failure_shapes import DoneShape
from scheduling.operations.failures import Done
from scheduling.operations.refused import Code, Refused

PASS_SECONDS = 1.0
"""After so long, the command tells how far it is, and goes on."""

MOST_NAMED = 20
"""So many ids that are not in the inbox are named."""

Act = Callable[[Actor, Selection, bool], Done]
"""Acts on the selection; the bool says whether it is a dry run."""


def add_selection(parser: ArgumentParser) -> None:
    """The ids, the conditions, --all, --yes and --count."""
    parser.add_argument("ids", nargs="*", type=whole(1, 2**63 - 1), metavar="ID", help="the ids of failures")
    add_conditions(parser)
    parser.add_argument("--all", action="store_true", help="the whole inbox")
    parser.add_argument("--yes", action="store_true", help="do it; without --yes or --count, failures are only counted")
    parser.add_argument("--count", type=whole(0), metavar="N", help="do it if at most so many failures match")


def act_on(console: Console, options: Mapping[str, Any], act: Act, said: str, again: str = "") -> int:
    """Count the failures, or act on them until none is left that can be acted on.

    Args:
        said: a sentence with `%(done)s` and `%(matching)s`.
        again: further options of the command that does what was counted.

    Raises:
        Refused: INVALID, COUNT_DIFFERS, FORBIDDEN, HELD or BROKER_AWAY.
    """
    actor, ids = console.actor(changes=True), options["ids"]
    if ids and (given_conditions(options) or options["all"]):
        raise Refused.value("ids", _("Give either ids or conditions."))
    if len(ids) > MOST_IDS:
        raise Refused.value("ids", _("Give at most %(count)s ids.") % {"count": MOST_IDS})
    exact = needs_exact_name(console, options)
    wanted = read_selection(actor, options, exact=exact, ids=ids or None, all=options["all"])
    counted = act(actor, wanted, True)
    if not options["yes"] and options["count"] is None:
        return _counted(console, options, counted, again)
    if options["count"] is not None and counted.matching > options["count"]:
        found = _("%(now)s failures match now, and the command says %(said)s. Nothing was done.")
        raise Refused(Code.COUNT_DIFFERS, found % {"now": counted.matching, "said": options["count"]})
    selected = wanted.model_copy(update={"count": counted.matching, "failed_before": counted.failed_before})
    return _told(console, _passes(console, actor, selected, act), said)


def _passes(console: Console, actor: Actor, selected: Selection, act: Act) -> Done:
    """Act in passes, and tell after each of them how far the work is. A refusal names the ids of all passes."""
    total: Done | None = None
    while True:
        before = () if total is None else total.done
        try:
            with passes_of(PASS_SECONDS):
                found = act(actor, selected, False)
        except Refused as refused:
            raise _with_done(refused, before) from None
        except (DatabaseError, InterfaceError) as error:
            raise database_away(error, before) from None
        total = replace(found, matching=found.matching if total is None else total.matching, done=before + found.done)
        if not found.done or found.left <= found.refused or found.replay is not None:
            return total
        console.note(_("%(done)s done, %(left)s left …") % {"done": len(total.done), "left": found.left})


def _with_done(refused: Refused, before: Sequence[int]) -> Refused:
    if before:
        refused.extra["done"] = [*before, *refused.extra.get("done", ())]
    return refused


def _counted(console: Console, options: Mapping[str, Any], found: Done, again: str) -> int:
    if console.as_json:
        console.json("done", done=_shape(found, dry_run=True))
        return Exit.DONE
    said = ngettext("%(count)s failure matches.", "%(count)s failures match.", found.matching)
    console.say(said % {"count": found.matching} + " " + _("Nothing was done."))
    _left_out(console, found)
    if found.matching:
        console.say(_("To go on:"))
        console.say(f"  {_command(options, found.matching, again)}")
    return Exit.DONE


def _command(options: Mapping[str, Any], count: int, again: str) -> str:
    """The command line that does what was counted."""
    parts = ["manage.py", "cron", options["verb"], *map(str, options["ids"])]
    for name, value in given_conditions(options).items():
        parts += [f"--{name}", shlex.quote(value)]
    if options["all"]:
        parts.append("--all")
    if options["as_user"]:
        parts += ["--as", shlex.quote(options["as_user"])]
    return " ".join([*parts, "--count", str(count), *([again] if again else [])])


def _told(console: Console, found: Done, said: str) -> int:
    code = Exit.DONE if not found.left or found.replay is not None else Exit.NOT_DONE
    if found.missing:
        code = Exit.NOT_FOUND
    if console.as_json:
        console.json("done", done=_shape(found, dry_run=False))
        return code
    console.say(said % {"done": len(found.done), "matching": found.matching})
    if found.replay is not None:
        canary = _("Replay %(id)s goes on when its first run has succeeded.")
        console.say(canary % {"id": found.replay})
    elif found.left:
        said = ngettext("%(count)s is still in the inbox.", "%(count)s are still in the inbox.", found.left)
        console.note(said % {"count": found.left})
    _left_out(console, found)
    return code


def _left_out(console: Console, found: Done) -> None:
    if found.missing:
        ids = ", ".join(map(str, found.missing[:MOST_NAMED]))
        console.note(_("Not in the inbox: %(ids)s.") % {"ids": ids + (", …" if found.missing[MOST_NAMED:] else "")})
    if found.left_out:
        said = _("%(count)s more were left out: their code asks for a permission that you lack.")
        console.note(said % {"count": found.left_out})


def _shape(found: Done, dry_run: bool) -> DoneShape:
    return DoneShape(
        dry_run=dry_run, matching=found.matching, done=list(found.done), left=found.left, refused=found.refused,
        left_out=found.left_out, failed_before=found.failed_before, replay=found.replay, missing=list(found.missing),
    )  # fmt: skip
