"""The registry of the verbs: the name of each verb, and its module."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any, Protocol

from scheduling.management.cron import (
    add,
    apply,
    backfill,
    backfills,
    calendars,
    cancel,
    delete,
    discard,
    edit,
    export,
    failed,
    history,
    output,
    pause,
    republish,
    rerun,
    resume,
    run,
    runs,
    show,
    status,
    token,
    undo,
    why,
)
from scheduling.management.cron import list as list_
from scheduling.management.cron import next as next_
from scheduling.management.cron.console import Console


class Verb(Protocol):
    """What the module of a verb has."""

    HELP: str
    """A sentence."""

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the arguments of the verb."""

    def run(self, console: Console, options: Mapping[str, Any]) -> int:
        """Do the work, and return the exit code.

        Raises:
            Refused: nothing was done. The command tells the reason.
        """


VERBS: dict[str, Verb] = {
    "list": list_,
    "show": show,
    "add": add,
    "edit": edit,
    "pause": pause,
    "resume": resume,
    "delete": delete,
    "history": history,
    "undo": undo,
    "run": run,
    "next": next_,
    "calendars": calendars,
    "why": why,
    "backfill": backfill,
    "backfills": backfills,
    "status": status,
    "runs": runs,
    "failed": failed,
    "republish": republish,
    "discard": discard,
    "output": output,
    "cancel": cancel,
    "rerun": rerun,
    "token": token,
    "export": export,
    "apply": apply,
}
"""In the order of the help."""
