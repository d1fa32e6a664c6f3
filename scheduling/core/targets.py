"""The kinds of targets that a schedule can run.

A new kind needs an entry in `TARGET_KINDS`, a Django model, an admin page, code that registers its handlers, and a
migration. The key of the entry, the type, is the name of the Django model in lower case. The Scheduler's foreign key to
the target has the same name.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TargetKind:
    """One kind of target.

    Args:
        model: `app_label.Model` of its rows.
        name_column: the column with the row's name. If each row names its own handler, this name is the name of the
            handler.
        searched: the columns of the target that the search on the schedules page includes.
        handler: the name of the handler that all rows share; empty if each row names its own handler.
        sends: whether a run can send messages to recipients.
    """

    model: str
    name_column: str = "name"
    searched: tuple[str, ...] = ("name",)
    handler: str = ""
    sends: bool = False


TARGET_KINDS = {
    "worker": TargetKind("scheduling.Worker", searched=("name", "title")),
    "report": TargetKind("cron_reports.Report", "controller", searched=("controller", "title"), sends=True),
    "reminder": TargetKind("scheduling.Reminder", handler="send", sends=True),
}

TARGETS = tuple(TARGET_KINDS)
"""The types of the targets."""


def handler_name(type_: str, target_name: str) -> str:
    """The name of the handler that a target names, or that all targets of its type share."""
    kind = TARGET_KINDS.get(type_)
    return kind.handler if kind is not None and kind.handler else target_name


A_TARGET = " or ".join(", ".join(f"a {type_}" for type_ in TARGET_KINDS).rsplit(", ", 1))
"""`a worker, a report or a reminder`: for messages to users."""
