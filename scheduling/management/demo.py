"""Switches the demo app on or off. The site's settings install the demo app if CRON_DEMO is 1."""

from __future__ import annotations

import os
import sys

from django.db.models import Q

from scheduling.models import Scheduler

PREFIX = "demo."
"""The names of all demo Workers begin with this prefix."""


def choose(demo: bool, again: list[str] | None) -> None:
    """Set CRON_DEMO for this process and all processes that it starts.

    Args:
        demo: whether the demo is wanted.
        again: the command line that restarts this program. After the restart, the settings read the new CRON_DEMO. If
            None, the program continues without a restart.
    """
    wanted = "1" if demo else "0"
    if os.environ.get("CRON_DEMO") == wanted:
        return
    os.environ["CRON_DEMO"] = wanted
    if again is not None:
        sys.stdout.flush()
        sys.stderr.flush()
        os.execv(again[0], again)  # noqa: S606 (the same program, with CRON_DEMO in its environment)


def pause_schedules() -> int:
    """Pause the demo's schedules, because they would fail without the demo's code. Returns how many were paused."""
    demos = Q(worker__name__startswith=PREFIX) | Q(report__isnull=False, description__startswith="Demo: ")
    schedulers = list(Scheduler.objects.filter(demos, status=True))
    for scheduler in schedulers:
        scheduler.status = False
        scheduler.save(update_fields=["status"])
    return len(schedulers)
