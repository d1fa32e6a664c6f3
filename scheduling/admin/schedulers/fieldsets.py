"""The groups of fields of the form of a schedule."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext_lazy

from scheduling.admin.schedulers.ping_fields import PING_URL
from scheduling.admin.schedulers.ping_pages import MONITOR
from scheduling.admin.schedulers.revisions import WHY
from scheduling.core.targets import TARGETS
from scheduling.models.after import AFTER_COLUMNS
from scheduling.models.own_retention import RETENTION_COLUMNS
from scheduling.models.own_retry_policy import RETRY_COLUMNS
from scheduling.models.own_timing import TIMING_COLUMNS
from scheduling.models.run_bounds import RUN_BOUNDS

FOLDED = (
    "after", *RETRY_COLUMNS, *RETENTION_COLUMNS, *TIMING_COLUMNS, *RUN_BOUNDS, "calendar", "time_limit", "language",
    "user", "group", PING_URL,
)  # fmt: skip
"""The fields that most schedules leave empty. A group of them is folded while it is empty."""

FIELDSETS: Any = (
    (None, {"fields": ("description",)}),
    (
        gettext_lazy("What"),
        {
            "fields": (*TARGETS, "params"),
            "description": gettext_lazy("Choose exactly one."),
        },
    ),
    (
        gettext_lazy("When"),
        {
            "fields": ("schedule", "date_time", "timezone", "paused", "pause_reason", "next_runs", "what_changes"),
            "description": gettext_lazy("Enter a cron expression or an interval, or one date and time."),
        },
    ),
    (
        gettext_lazy("Spread, missed runs, bounds"),
        {
            "fields": (
                "spread_seconds", "spread_each", "missed_runs", "missed_cap", "missed_within_seconds",
                "active_from", "active_until",
            ),
            "description": gettext_lazy("Moves the starts of the runs, or leaves some of them out."),
        },
    ),
    (gettext_lazy("Calendar"), {"fields": ("calendar", "on_excluded")}),
    (gettext_lazy("Overlap, service"), {"fields": ("overlap", "stay_alive")}),
    (
        gettext_lazy("Start deadline, number of runs"),
        {
            "fields": RUN_BOUNDS,
            "description": gettext_lazy("When an occurrence may not run any more, and what pauses the schedule."),
        },
    ),
    (
        gettext_lazy("Start after another schedule"),
        {
            "fields": ("after", *AFTER_COLUMNS),
            "description": gettext_lazy("A run waits until the last run of the other schedule has succeeded."),
        },
    ),
    (
        gettext_lazy("Retry policy"),
        {
            "fields": (
                "max_retries", "retry_delay_ms", "retry_multiplier", "retry_max_delay_ms", "retry_jitter",
                "retry_table",
            ),
            "description": gettext_lazy("Empty: the value of the target's code, else of the site's settings."),
        },
    ),
    (gettext_lazy("Queue, priority"), {"fields": ("queue", "priority")}),
    (gettext_lazy("Time limit, language"), {"fields": ("time_limit", "language")}),
    (
        gettext_lazy("Retention"),
        {
            "fields": tuple(RETENTION_COLUMNS),
            "description": gettext_lazy("How long the runs of this schedule are kept. Empty: as the settings say."),
        },
    ),
    MONITOR,
    (gettext_lazy("Owner"), {"fields": ("user", "group")}),
    WHY,
)  # fmt: skip
