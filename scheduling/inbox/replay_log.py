"""Writes an entry of Django's admin log for each execution that a replay republishes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.contrib.admin.models import CHANGE, LogEntry
from django.db import models

from scheduling.models import Replay
from scheduling.models.entry_group import entry_of_group, group_of


def log_replayed(executions: Iterable[models.Model], replay: Replay, **_kwargs: Any) -> None:
    """Write the entries, with the name of the user who started the replay.

    It is a receiver of `executions_replayed`. Producers send this signal, too, and they do not load the admin's pages.
    """
    if replay.user_id is None:  # the user was deleted. The execution's `reason` still has the name.
        return
    found: dict[int | None, list[models.Model]] = {}
    for row in executions:
        found.setdefault(group_of(row), []).append(row)
    text = f"republish: replay {replay.pk}"
    for group, rows in found.items():
        said: Any = text if group is None else entry_of_group(text, group)
        LogEntry.objects.log_actions(replay.user_id, rows, CHANGE, said)
