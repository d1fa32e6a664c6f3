"""When the real package runs a task: its own `ModelEntry`, asked on a simulated clock.

Beat asks an entry whether it is due, and lets it sleep for the time that the entry names. So does this clock. It is
the ideal beat, prompt and undisturbed: a real one is late by up to five seconds, and an interval is then late for ever.
An entry that waits for its start time is overdue once that has passed, so a real beat that reads its table anew before
the next time of the crontab runs it at that moment.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import time_machine

_TICK = timedelta(microseconds=1)


def beat_runs(task: Any, since: datetime, until: datetime, most: int) -> Iterator[datetime]:
    """The instants in [since, until] at which beat runs the task, at most so many.

    Args:
        task: the row, which is not saved.
    """
    from celery import Celery
    from django_celery_beat.schedulers import ModelEntry

    app = Celery("tests", set_as_current=False)
    app.conf.timezone = "UTC"
    with time_machine.travel(since, tick=False) as traveller:
        # A disabled task has no runs. What it would do when it is enabled is compared.
        task.enabled, task.save = True, lambda *_args, **_kwargs: None
        entry, now = ModelEntry(task, app=app), since
        while most > 0:
            is_due, wait = entry.is_due()
            if is_due:
                yield now
                most -= 1
                entry = next(entry)
                task = entry.model
                continue
            if wait is None or not task.enabled:
                return
            now += max(timedelta(seconds=wait), _TICK)
            if now > until:
                return
            traveller.move_to(now)
