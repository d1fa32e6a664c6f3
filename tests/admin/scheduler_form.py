"""The addresses of the Scheduler's form, and the data that a browser posts from the form."""

from __future__ import annotations

from typing import Any

from django.urls import reverse

from scheduling.models import Scheduler, Worker

ADD = reverse("admin:scheduling_scheduler_add")


def form(**values: Any) -> dict[str, Any]:
    """Return the data that a browser posts from the form."""
    blank = {
        "description": "Nightly",
        "worker": "",
        "report": "",
        "reminder": "",
        "params": "{}",
        "schedule": "0 8 * * *",
        "date_time_0": "",
        "date_time_1": "",
        "timezone": "",
        "pause_reason": "",
        "spread_seconds": "",
        "missed_runs": "latest",
        "missed_cap": "",
        "missed_within_seconds": "",
        "active_from_0": "",
        "active_from_1": "",
        "active_until_0": "",
        "active_until_1": "",
        "calendar": "",
        "on_excluded": "skip",
        "overlap": "allow",
        "after": "",
        "after_span": "day",
        "after_within_seconds": "12h",
        "after_late": "skip",
        "max_retries": "",
        "retry_delay_ms": "",
        "retry_multiplier": "",
        "retry_max_delay_ms": "",
        "retry_jitter": "unknown",
        "keep_success_days": "",
        "keep_failed_days": "",
        "keep_output_days": "",
        "keep_count": "",
        "start_within_seconds": "",
        "max_runs": "",
        "pause_after_failures": "",
        "time_limit": "",
        "language": "",
        "user": "",
        "group": "",
        "change_reason": "",
    }
    return {**blank, **values}


def worker(name: str = "tests.noop") -> int:
    """Return the primary key of a registered worker's row."""
    return Worker.objects.get(name=name).pk


def change(scheduler: Scheduler) -> str:
    """Return the address of the schedule's form."""
    return reverse("admin:scheduling_scheduler_edit", args=[scheduler.pk])


def overview(scheduler: Scheduler) -> str:
    """Return the address of the schedule's page."""
    return reverse("admin:scheduling_scheduler_change", args=[scheduler.pk])
