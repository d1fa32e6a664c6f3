"""`cron rerun`: runs the schedule of an execution again, with the params of the execution."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from scheduling.handlers.secret_params import masked
from scheduling.handlers.targets import handler_of_execution
from scheduling.management.cron.console import Console
from scheduling.management.cron.follow import add_waiting, after_the_start
from scheduling.management.cron.params_options import add_params, read_params
from scheduling.operations.executions import find, rerun

HELP = "Runs the schedule of an execution again, with its params. Prints the id of the new execution."


def add_arguments(parser: ArgumentParser) -> None:
    """The execution, params, --wait and --follow."""
    parser.add_argument("id", metavar="ID", help="the id of an execution")
    add_params(parser)
    add_waiting(parser)


def run(console: Console, options: Mapping[str, Any]) -> int:
    """Start the new run, and wait for it if asked to."""
    actor = console.actor(changes=True)
    row = find(actor, options["id"])
    params = read_params(options, masked(handler_of_execution(row), row.params))
    return after_the_start(console, actor, rerun(actor, row.pk, params).pk, options)
