"""Schedules: code that is missing here, rows that cannot be planned, and what is late."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from django.db.models import Count, QuerySet

from scheduling.doctor.finding import Finding, counted, fail, ok, some, span, warn
from scheduling.models import Scheduler
from scheduling.models.scheduler import TARGETS
from scheduling.registry import UnknownHandler, find
from scheduling.targets import target_model

LATE, VERY_LATE = timedelta(seconds=60), timedelta(minutes=5)


def examine(now: datetime) -> Iterator[Finding]:
    """Everything that keeps an active schedule from running on time."""
    yield from _code()
    # Both kinds have no next run: an index finds them, however many schedules there are.
    idle = Scheduler.objects.filter(status=True, next_run_at__isnull=True)
    yield from _broken(idle.exclude(plan_error=""))
    yield from _without_next_run(idle.filter(plan_error="", plan_stale=0))
    yield from _overdue(now)


def _code() -> Iterator[Finding]:
    needed: list[str] = []
    unused: list[str] = []
    for type_ in TARGETS:
        used = dict(
            Scheduler.objects.filter(status=True, **{f"{type_}__isnull": False})
            .order_by()
            .values_list(f"{type_}_id")
            .annotate(Count("pk"))
        )
        for row in target_model(type_)._default_manager.order_by("pk").iterator():
            name = row.handler_name  # type: ignore[attr-defined]
            try:
                find(type_, name)
            except UnknownHandler:
                if row.pk in used:
                    needed.append(f"{type_} {name} ({counted(used[row.pk], 'schedule')})")
                elif type_ != "reminder":
                    unused.append(f"{type_} {name}")
    if needed:
        yield fail(
            "code",
            f"Active schedules name code that is not registered here: {some(needed)}.",
            "Deploy the code that registers it, or switch those schedules off.",
        )
    elif unused:
        yield warn(
            "code",
            f"{counted(len(unused), 'target')} without code here, used by no active schedule: {some(unused)}.",
            "Delete them in the admin if their code is not coming back.",
        )
    else:
        yield ok("code", "Everything that can be scheduled is registered here.")


def _broken(rows: QuerySet[Scheduler]) -> Iterator[Finding]:
    count = rows.count()
    if count:
        first = rows.order_by("pk").first()
        example = f" Schedule {first.pk}: {first.plan_error}" if first else ""
        yield fail(
            "plans",
            f"{counted(count, 'active schedule')} cannot be planned.{example}",
            "Correct the row in the admin; its form says what is wrong.",
        )
    else:
        yield ok("plans", "Every active schedule can be planned.")


def _without_next_run(rows: QuerySet[Scheduler]) -> Iterator[Finding]:
    ids = list(rows.order_by("pk").values_list("pk", flat=True)[:100])
    if ids:
        yield warn(
            "next run",
            f"Active without a next run: {counted(len(ids), 'schedule')} ({some(map(str, ids))}).",
            "Their time has passed or never comes: switch them off, or give them another.",
        )


def _overdue(now: datetime) -> Iterator[Finding]:
    late = Scheduler.objects.filter(next_run_at__lt=now - LATE)
    oldest = late.order_by("next_run_at").values_list("next_run_at", flat=True).first()
    if oldest is None:
        yield ok("overdue", "Nothing that is due is left unclaimed.")
        return
    level = fail if oldest < now - VERY_LATE else warn
    waited = span((now - oldest).total_seconds())
    yield level(
        "overdue",
        f"{counted(late.count(), 'schedule')} due and not claimed, the oldest for {waited}.",
        "Start a producer, or read what the producers log: each occurrence will still run once.",
    )
