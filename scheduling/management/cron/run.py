"""`cron run`: runs a schedule now, or a worker, report or reminder once."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from scheduling.core.targets import TARGET_KINDS
from scheduling.handlers.secret_params import masked
from scheduling.handlers.targets import handler_behind, handler_of
from scheduling.management.cron.console import Console
from scheduling.management.cron.follow import add_waiting, after_the_start, before_the_start
from scheduling.management.cron.params_options import add_params, read_params
from scheduling.management.cron.schedule_name import CHANGING, named_schedule
from scheduling.models import SchedulerExecution
from scheduling.operations import schedule_state
from scheduling.operations.actor import Actor
from scheduling.operations.refused import Code, Refused
from scheduling.operations.run_target import find_target, run_target

HELP = "Runs a schedule now, or a worker, report or reminder once. Prints the id of the execution."


def add_arguments(parser: ArgumentParser) -> None:
    """The schedule or the target, params, --wait and --follow."""
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("name", nargs="?", metavar="SCHEDULE", help=CHANGING)
    for type_ in TARGET_KINDS:
        what.add_argument(f"--{type_}", metavar="NAME", help=f"run this {type_} once, without a schedule")
    parser.add_argument("--beside", action="store_true", help="start it beside a run that is not over")
    add_params(parser)
    add_waiting(parser)


def run(console: Console, options: Mapping[str, Any]) -> int:
    """Start the run, and wait for it if asked to."""
    actor = console.actor(changes=True)
    before_the_start(console, actor, options)
    made = _started(console, actor, options)
    return after_the_start(console, actor, made.pk, options)


def _started(console: Console, actor: Actor, options: Mapping[str, Any]) -> SchedulerExecution:
    for type_ in TARGET_KINDS:
        if (name := options[type_]) is not None:
            return _target(actor, type_, name, options)
    if not options["name"]:
        raise Refused(Code.NOT_FOUND, _("Name a schedule, or give --worker, --report or --reminder."))
    row = named_schedule(console, actor, options["name"], options)
    params = read_params(options, masked(handler_of(row), row.params))
    return schedule_state.run(actor, row.pk, params, beside=options["beside"])


def _target(actor: Actor, type_: str, name: str, options: Mapping[str, Any]) -> SchedulerExecution:
    own = getattr(find_target(actor, type_, name), "params", {})
    code = handler_behind(type_, find_target(actor, type_, name))
    return run_target(actor, type_, name, read_params(options, masked(code, own)))
