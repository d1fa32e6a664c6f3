"""Waits for a run, and prints its output as it comes."""

from __future__ import annotations

import time
from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from django.utils import timezone as clock
from django.utils.translation import gettext as _

from scheduling.core.lifecycle import State
from scheduling.core.text import one_line
from scheduling.execution.run_status import UnknownRun, status
from scheduling.management.cron.console import Console
from scheduling.management.cron.exit_codes import Exit
from scheduling.management.cron.paging import whole
from scheduling.operations.actor import Actor
from scheduling.operations.executions import VIEW, by_id
from scheduling.operations.output import Cursor, after
from scheduling.operations.output_filter import Wanted
from scheduling.operations.refused import Code, Refused
from scheduling.operations.shaping import execution_detail
from scheduling.operations.times import viewers_zone
from scheduling.operations.waiting_words import waiting_words

LOOK_EVERY = 0.5
"""Seconds between two looks. A consumer stores output as often."""


def add_waiting(parser: ArgumentParser) -> None:
    """--wait and --follow."""
    wait = "wait until it is over, at most so many seconds (without a number: without a limit)"
    parser.add_argument("--wait", nargs="?", type=whole(0), const=-1, metavar="SECONDS", help=wait)
    parser.add_argument("--follow", action="store_true", help="print its output as it comes, until it is over")


def before_the_start(console: Console, actor: Actor, options: Mapping[str, Any]) -> None:
    """Check that the actor may see the run, if it is waited for or shown. After the start it would be too late.

    Raises:
        Refused: FORBIDDEN.
    """
    if console.as_json or options["follow"] or options["wait"] is not None:
        actor.must(VIEW)


def after_the_start(console: Console, actor: Actor, pk: int, options: Mapping[str, Any]) -> int:
    """Tell the id of a new execution, and wait for it if the options say so.

    Returns:
        DONE; NOT_DONE if the run was waited for and has not succeeded.

    Raises:
        Refused: NOT_FOUND if the execution is deleted meanwhile.
    """
    waits = options["wait"] is not None or options["follow"]
    if not console.as_json:
        console.say(pk)
        console.stdout.flush()
    elif waits:  # the document comes at the end of the run, or never if Ctrl-C comes first
        console.note(_("Execution %(id)s was asked for.") % {"id": pk})
        console.stderr.flush()
    code = Exit.DONE
    if waits:
        seconds = None if options["wait"] in (None, -1) else options["wait"]
        code = until_over(console, pk, Wanted(), options["follow"] and not console.as_json, seconds)
    if console.as_json:
        console.json("execution", execution=execution_detail(actor, by_id(actor, pk)))
    return code


def until_over(console: Console, pk: int, wanted: Wanted, follow: bool, seconds: float | None = None) -> Exit:
    """Wait until an execution is over. Each retry, and the state at the end, are told on stderr.

    Args:
        follow: whether to print its output.
        seconds: wait at most so long; None: without a limit.

    Returns:
        DONE if it has succeeded, else NOT_DONE.

    Raises:
        Refused: NOT_FOUND if there is no such execution.
    """
    end, cursor = None if seconds is None else time.monotonic() + seconds, Cursor()
    told = 0  # the last attempt of which it was said that it has failed and another one follows
    while True:
        try:
            # The last lines of a run are committed together with its end. So the state is read first.
            found = status(pk)
        except UnknownRun:
            raise Refused(Code.NOT_FOUND, _("There is no execution %(id)s any more.") % {"id": pk}) from None
        if follow:
            cursor = print_lines(console, pk, cursor, wanted)
        if found.state == State.RETRYING.value and found.attempt > told:
            told = found.attempt
            _tell_retry(console, pk)
        if found.is_over or (end is not None and time.monotonic() >= end):
            break
        console.pause(LOOK_EVERY)
    if found.is_over:
        console.note(f"{found.state}: {one_line(found.error)[:500]}" if found.error else found.state)
    else:
        console.note(_("It is not over yet: %(state)s.") % {"state": found.state})
    return Exit.DONE if found.state == State.SUCCEEDED.value else Exit.NOT_DONE


def _tell_retry(console: Console, pk: int) -> None:
    """Say that an attempt has failed, and when the next one is due. The next one may have started meanwhile."""
    row = by_id(console.actor(), pk)
    if row.state == State.RETRYING.value:
        console.note(waiting_words(row, clock.now(), viewers_zone()))
        console.stderr.flush()


def print_lines(console: Console, pk: int, cursor: Cursor, wanted: Wanted) -> Cursor:
    """Print the lines after the cursor, all of them, and return the cursor after the last one."""
    while True:
        found = after(pk, cursor, wanted)
        for _attempt, lines in found.groups:
            for line in lines:
                console.say(line)
        console.stdout.flush()
        if not found.cut or found.cursor == cursor:
            return found.cursor
        cursor = found.cursor
