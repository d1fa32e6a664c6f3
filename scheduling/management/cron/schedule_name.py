"""The schedule that the command line of a changing verb names.

A script that is repeated must not change another schedule because the named one is gone. So a beginning of a name is
enough only if a person at a terminal reads what is done.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scheduling.management.cron.console import Console
from scheduling.models import Scheduler
from scheduling.operations.actor import Actor
from scheduling.operations.schedules import find

READING = "an id, a name, or the beginning of one"
CHANGING = "an id or a name; on a terminal and without --yes also the beginning of one"
"""Help texts."""


def named_schedule(console: Console, actor: Actor, text: str, options: Mapping[str, Any]) -> Scheduler:
    """The schedule with this id or name, or with this beginning if a person at a terminal names it.

    Raises:
        Refused: FORBIDDEN, NOT_FOUND or AMBIGUOUS.
    """
    return find(actor, text, exact=needs_exact_name(console, options))


def needs_exact_name(console: Console, options: Mapping[str, Any]) -> bool:
    """Whether the beginning of a name is not enough: without a terminal, or with --yes."""
    return bool(options.get("yes")) or not console.is_interactive
