"""The options that select failures of the inbox, for `failed`, `republish` and `discard`."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from scheduling.core.targets import TARGETS
from scheduling.management.cron.checked import checked
from scheduling.management.cron.schedule_name import READING
from scheduling.operations.actor import Actor
from scheduling.operations.failure_selection import Selection
from scheduling.operations.schedules import find

CONDITIONS = ("group", "schedule", "type", "target", "error")


def add_conditions(parser: ArgumentParser) -> None:
    """--group, --schedule, --type, --target and --error."""
    parser.add_argument("--group", metavar="FINGERPRINT", help="an error group, as `failed --groups` tells")
    parser.add_argument("--schedule", help=READING)
    parser.add_argument("--type", choices=TARGETS, help="the type of the target")
    parser.add_argument("--target", metavar="NAME", help="the name of a target")
    parser.add_argument("--error", metavar="CLASS", help="the class of the error")


def read_selection(actor: Actor, options: Mapping[str, Any], *, exact: bool = False, **others: Any) -> Selection:
    """The selection that the options make.

    Args:
        exact: the beginning of a schedule's name is not enough.
        others: further values of the selection.

    Raises:
        Refused: NOT_FOUND or AMBIGUOUS for the schedule; INVALID.
    """
    name = options["schedule"]
    schedule = None if name is None else find(actor, name, exact=exact).pk
    return checked(
        Selection, fingerprint=options["group"], type=options["type"], target_name=options["target"],
        error_class=options["error"], scheduler=schedule, **others,
    )  # fmt: skip


def given_conditions(options: Mapping[str, Any]) -> dict[str, str]:
    """The conditions that the command line gives, by their options."""
    return {name: options[name] for name in CONDITIONS if options[name] is not None}
