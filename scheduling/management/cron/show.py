"""`cron show`: one schedule, its next runs and its last executions."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping
from functools import partial
from typing import Any

from django.utils.translation import gettext as _

from scheduling.management.cron.checked import checked
from scheduling.management.cron.console import Console
from scheduling.management.cron.exit_codes import Exit
from scheduling.management.cron.moments import due_moment
from scheduling.management.cron.run_table import run_table
from scheduling.management.cron.schedule_name import READING
from scheduling.management.cron.schedule_sight import show_schedule
from scheduling.operations import executions
from scheduling.operations.actor import Actor
from scheduling.operations.execution_shapes import ExecutionShape
from scheduling.operations.next_runs import next_runs_shape
from scheduling.operations.run_filter import RunFilter, run_keys
from scheduling.operations.schedule_words import zone_of
from scheduling.operations.schedules import find
from scheduling.operations.shapes import UnusableShape
from scheduling.operations.shaping import each_usable, executions_in_bulk, schedule_shape

HELP = "Shows a schedule, its next runs and its last executions."
NEXT, LAST = 3, 5


def add_arguments(parser: ArgumentParser) -> None:
    """The schedule."""
    parser.add_argument("name", metavar="SCHEDULE", help=READING)


def run(console: Console, options: Mapping[str, Any]) -> int:
    """Print the schedule."""
    actor = console.actor()
    row = find(actor, options["name"])
    shape, following = schedule_shape(actor, row.pk), next_runs_shape(row, NEXT)
    last, unusable = _last(actor, row.pk)
    if console.as_json:
        console.json("schedule", schedule=shape, next_runs=following, executions=last, unusable=unusable)
        return Exit.DONE
    show_schedule(console, shape)
    if following.runs:
        console.say()
        console.say(_("Next runs (%(words)s):") % {"words": following.words})
        for at in following.runs:
            console.say(f"  {due_moment(at, zone_of(row))}")
    if last or unusable:
        console.say()
        run_table(console, last, unusable)
    return Exit.DONE


def _last(actor: Actor, pk: int) -> tuple[list[ExecutionShape], list[UnusableShape]]:
    if not actor.has_perm(executions.VIEW):
        return [], []
    keys, _next, _cut = run_keys(actor, checked(RunFilter, scheduler=pk), None, LAST)
    return each_usable(keys, partial(executions_in_bulk, actor))
