"""The demo of a first start: code of an app that the settings install when CRON_DEMO says so."""

from __future__ import annotations

import os
import sys

from django.db.models import Q

from scheduling.models import Scheduler

PREFIX = "demo."
"""The names of all demo workers begin with it."""


def choose(demo: bool, again: list[str] | None) -> None:
    """Set CRON_DEMO for this process and all it starts.

    Args:
        demo: whether it is wanted.
        again: the command line to become, for this process has read its settings without it; None to go on as it is.
    """
    wanted = "1" if demo else "0"
    if os.environ.get("CRON_DEMO") == wanted:
        return
    os.environ["CRON_DEMO"] = wanted
    if again is not None:
        sys.stdout.flush()
        sys.stderr.flush()
        os.execv(again[0], again)  # noqa: S606 (the same program, with one more name in its environment)


def switch_off() -> int:
    """Switch the demo's schedules off, as they would only fail without its code; return how many were on."""
    demos = Q(worker__name__startswith=PREFIX) | Q(report__isnull=False, description__startswith="Demo: ")
    schedulers = list(Scheduler.objects.filter(demos, status=True))
    for scheduler in schedulers:
        scheduler.status = False
        scheduler.save(update_fields=["status"])
    return len(schedulers)
