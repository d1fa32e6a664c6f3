"""Schedules of the invented shop with every rule in use, and a run of each kind that waits or does not run."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django.urls import reverse

from scheduling.core import skip_reasons
from scheduling.core.overlap import blocked_by
from scheduling.core.run_bounds import PausedFor, failed_in_a_row, ran_often
from scheduling.execution.planning import plan_anew
from scheduling.models import Calendar, Scheduler, SchedulerExecution, Worker
from tests.factories import SchedulerExecutionFactory

EVERY_RULE, ENDED, USED_UP, FAILING, UNSAVED = (
    "Close the books of the shops", "Advent offers", "Trial of the new feed", "Feed of the old supplier",
    "Ledger of the shops",
)  # fmt: skip
BERLIN = ZoneInfo("Europe/Berlin")


def store_rules(calendar: Calendar, now: datetime) -> None:
    """Store the schedules, and the runs of the first one."""
    common: dict[str, Any] = {"worker": Worker.objects.get(name="shop.send_invoices"), "timezone": "Europe/Berlin"}
    ledger = Scheduler.objects.create(description=UNSAVED, schedule="0 */2 * * *", **common)
    row = Scheduler.objects.create(
        description=EVERY_RULE, schedule="@every 90m from 2026-01-05T08:00Z", spread_seconds=1800, missed_runs="all",
        missed_cap=5, missed_within_seconds=6 * 3600, active_from=now - timedelta(days=30),
        active_until=now + timedelta(days=200), calendar=calendar, on_excluded="hold", overlap="wait",
        start_within_seconds=900, max_runs=2_000, pause_after_failures=3, after=ledger, after_span="previous",
        after_within_seconds=3600, after_late="fail", **common,
    )  # fmt: skip
    ended = Scheduler.objects.create(description=ENDED, schedule="0 9 * * *", **common)
    Scheduler.objects.filter(pk=ended.pk).update(active_until=now - timedelta(days=2))
    plan_anew([ended.pk], now)
    _paused(USED_UP, PausedFor.RUNS, ran_often(10), now, max_runs=10, **common)
    _paused(FAILING, PausedFor.FAILURES, failed_in_a_row(3, 812), now,
            pause_after_failures=3, **common)  # fmt: skip
    for number, (columns, reason) in enumerate(_not_run(ledger, now)):
        due = now - timedelta(minutes=90 * (number + 1))
        SchedulerExecutionFactory(
            scheduler=row, scheduled_at=due, executed_at=due, published_at=None, reason=reason, **columns
        )
    Scheduler.objects.update(created_at=now - timedelta(days=40))


def _paused(name: str, rule: PausedFor, reason: str, now: datetime, **columns: Any) -> None:
    row = Scheduler.objects.create(description=name, schedule="0 7 * * *", **columns)
    Scheduler.objects.filter(pk=row.pk).update(
        status=False, planned_status=False, paused_at=now - timedelta(hours=7), pause_reason=reason,
        paused_for=rule.value, next_run_at=None,
    )  # fmt: skip


def _not_run(ledger: Scheduler, now: datetime) -> Iterator[tuple[dict[str, Any], str]]:
    """The columns and the reason of one run of each kind that waits or does not run."""
    first, last = now - timedelta(hours=9), now - timedelta(hours=3)
    skipped: dict[str, Any] = {"skipped": True, "missed": 4}
    behind = f"“{ledger}” (schedule {ledger.pk}): its run of {last.astimezone(BERLIN):%Y-%m-%d %H:%M %Z} "
    yield (
        {"blocked": True, "wake_at": now + timedelta(minutes=1), "waits_for": ledger.pk},
        (f"Waits for {behind}is running as execution 991."),
    )
    yield {"blocked": True, "start_by": now + timedelta(minutes=6)}, blocked_by(990, "wait")
    yield {"blocked": True}, blocked_by(990, "replace")
    for why in (skip_reasons.NO_PRODUCER, skip_reasons.NOT_CAUGHT_UP, skip_reasons.OVER_CAP, skip_reasons.CONFIRMED):
        yield skipped, skip_reasons.missed(first, last, 4, why, BERLIN)
    yield skipped, skip_reasons.excluded(first, last, 4, "Holidays DE: Christmas", BERLIN)
    yield (
        skipped,
        skip_reasons.held(first, last, 4, "Holidays DE: stocktaking", BERLIN, skip_reasons.later_ran(now, BERLIN)),
    )
    yield skipped, skip_reasons.left_out(990, service=False)
    yield {"skipped": True, "missed": 0}, skip_reasons.newer(993)
    yield (
        {"skipped": True, "missed": 1},
        skip_reasons.expired(timedelta(minutes=15), timedelta(minutes=18), "in the queue main for a free consumer"),
    )
    yield (
        {"skipped": True, "missed": 0},
        skip_reasons.predecessor_late(last, behind + "has failed as execution 991", BERLIN),
    )
    yield skipped, skip_reasons.paused(first, last, 4, BERLIN, "anna", "the auditors are here")


def rule_pages() -> Iterator[tuple[str, str]]:
    """The names and the addresses of the pages that show the rules."""
    for name, word in ((EVERY_RULE, "every"), (ENDED, "ended"), (USED_UP, "used-up"), (FAILING, "failing")):
        row = Scheduler.objects.get(description=name)
        yield f"rules-{word}", reverse("admin:scheduling_scheduler_change", args=[row.pk])
    row = Scheduler.objects.get(description=EVERY_RULE)
    yield "rules-edit", reverse("admin:scheduling_scheduler_edit", args=[row.pk])
    yield "rules-history", reverse("admin:scheduling_scheduler_history", args=[row.pk])
    yield "rules-run-now", reverse("admin:scheduling_scheduler_run", args=[row.pk])
    yield "rules-why", f"{reverse('admin:scheduling_scheduler_why', args=[row.pk])}?at=2026-12-25 12:00"
    for run in SchedulerExecution.objects.filter(scheduler=row).order_by("pk"):
        words = "blocked" if run.state == "blocked" else skip_reasons.kind_of(run.reason).value
        yield f"rules-run-{words}-{run.pk}", reverse("admin:scheduling_schedulerexecution_change", args=[run.pk])
