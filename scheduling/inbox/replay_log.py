"""Writes an entry of Django's admin log for each execution that a replay republishes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.contrib.admin.models import CHANGE, LogEntry
from django.db import models

from scheduling.models import Replay


def log_replayed(executions: Iterable[models.Model], replay: Replay, **_kwargs: Any) -> None:
    """Write the entries, with the name of the user who started the replay.

    It is a receiver of `executions_replayed`. Producers send this signal, too, and they do not load the admin's pages.
    """
    if replay.user_id is not None:  # None if the user was deleted. The execution's `reason` still has the name.
        LogEntry.objects.log_actions(replay.user_id, executions, CHANGE, f"republish: replay {replay.pk}")
