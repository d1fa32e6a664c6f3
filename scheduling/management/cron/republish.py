"""`cron republish`: runs failures of the inbox again."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from scheduling.management.cron.console import Console
from scheduling.management.cron.inbox_act import act_on, add_selection
from scheduling.management.cron.paging import whole
from scheduling.operations.actor import Actor
from scheduling.operations.failure_selection import Selection
from scheduling.operations.failures import Done, republish

HELP = "Runs failures of the inbox again. Without --yes or --count, it only counts them."


def add_arguments(parser: ArgumentParser) -> None:
    """The selection, --minutes and --canary."""
    add_selection(parser)
    spread = "spread the runs evenly over so many minutes"
    parser.add_argument("--minutes", type=whole(0, 24 * 60), default=0, help=spread)
    parser.add_argument("--canary", action="store_true", help="run one first, and the others when it has succeeded")


def run(console: Console, options: Mapping[str, Any]) -> int:
    """Count the failures, or republish them."""
    minutes, canary = options["minutes"], options["canary"]

    def act(actor: Actor, wanted: Selection, dry_run: bool) -> Done:
        return republish(actor, wanted, dry_run=dry_run, minutes=minutes, canary=canary)

    again = " ".join([*([f"--minutes {minutes}"] if minutes else []), *(["--canary"] if canary else [])])
    return act_on(console, options, act, _("Republished %(done)s of %(matching)s failures."), again)
