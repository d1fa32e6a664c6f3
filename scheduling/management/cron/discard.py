"""`cron discard`: takes failures out of the inbox, with a reason."""

from __future__ import annotations

import shlex
from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from scheduling.management.cron.console import Console
from scheduling.management.cron.inbox_act import act_on, add_selection
from scheduling.operations.actor import Actor
from scheduling.operations.failure_selection import Selection
from scheduling.operations.failures import Done, discard

HELP = "Takes failures out of the inbox, with a reason. Without --yes or --count, it only counts them."


def add_arguments(parser: ArgumentParser) -> None:
    """The selection, and --reason."""
    add_selection(parser)
    parser.add_argument("--reason", default="", help="kept with each execution; needed with --yes and --count")


def run(console: Console, options: Mapping[str, Any]) -> int:
    """Count the failures, or discard them."""
    reason = options["reason"]

    def act(actor: Actor, wanted: Selection, dry_run: bool) -> Done:
        return discard(actor, wanted, reason, dry_run=dry_run)

    again = f"--reason {shlex.quote(reason) if reason else '…'}"
    return act_on(console, options, act, _("Discarded %(done)s of %(matching)s failures."), again)
