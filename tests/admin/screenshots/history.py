"""Stores the schedules of the invented shop with their history."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from typing import Any

from scheduling.core.cron import next_after, parse
from scheduling.core.fingerprint import fingerprint
from scheduling.core.lifecycle import State
from scheduling.core.occurrences import cron_key
from scheduling.core.skip_reasons import NO_PRODUCER, missed
from scheduling.execution.skip_tallying import tally_skips
from scheduling.execution.tallying import tally_waiting
from scheduling.models import Attempt, Output, Scheduler, SchedulerExecution, UncountedSkip, Worker
from scheduling.operations.schedule_words import zone_of
from tests.admin.screenshots.jobs import CANCELLED, CAUSES, DISCARDED, FAILED, GOOD, JOBS, SKIPPED, SLOW, Job

CONSUMER = "shop-worker-1-4242-9f3c"
STATES = {
    GOOD: State.SUCCEEDED, SLOW: State.SUCCEEDED, FAILED: State.FAILED, DISCARDED: State.DISCARDED,
    SKIPPED: State.SKIPPED, CANCELLED: State.CANCELLED,
}  # fmt: skip
REASONS = {
    FAILED: "All 3 retries have been used.",
    DISCARDED: "Discarded by ben: the shop was closed.",
    CANCELLED: "Cancelled by anna.",
}


def store_history(now: datetime) -> dict[str, Scheduler]:
    """Store all schedules and their runs. Return the schedules by their description."""
    chance = random.Random(1)
    schedules, runs = {}, []
    for job in JOBS:
        row = _schedule(job, now)
        schedules[job.description] = row
        ends = job.ends.rjust(job.runs, GOOD)[-job.runs :] if job.runs else ""
        past = _occurrences(job, now)[-len(ends) :] if ends else []
        made = [_run(job, row, *pair, chance) for pair in zip(past, ends[-len(past) :], strict=True)] if past else []
        runs += [run for run in made if run.finished_at is not None and run.finished_at < now]
    runs.sort(key=lambda run: run.scheduled_at)
    SchedulerExecution.objects.bulk_create(runs, batch_size=500)
    stored = list(SchedulerExecution.objects.exclude(state=State.SKIPPED.value).order_by("pk"))
    Attempt.objects.bulk_create([attempt for run in stored for attempt in _attempts(run)], batch_size=500)
    Output.objects.bulk_create([_output(run, now) for run in stored], batch_size=500)
    _tally(now)
    return schedules


def _tally(now: datetime) -> None:
    """Count the attempts and the skipped occurrences, as a producer does."""
    skips = SchedulerExecution.objects.filter(state=State.SKIPPED.value)
    UncountedSkip.objects.note(skips)
    for row, run in zip(UncountedSkip.objects.order_by("pk"), skips.order_by("pk"), strict=True):
        UncountedSkip.objects.filter(pk=row.pk).update(at=int(run.executed_at.timestamp()))
    tally_waiting(now)
    while tally_waiting(now + timedelta(minutes=2)) + tally_skips(now):
        pass


def _schedule(job: Job, now: datetime) -> Scheduler:
    columns: dict[str, Any] = {"timezone": job.zone, "params": job.params, **job.columns}
    row = Scheduler(
        description=job.description, worker=Worker.objects.get(name=job.worker), schedule=job.schedule, **columns
    )
    row.save()
    Scheduler.objects.filter(pk=row.pk).update(planned_at=now - timedelta(days=400))
    if job.pause_reason:
        row.refresh_from_db()
        row.status, row.pause_reason, row.paused_by = False, job.pause_reason, "anna"
        row.save()
        Scheduler.objects.filter(pk=row.pk).update(paused_at=now - timedelta(days=2, hours=5), planned_at=None)
    return row


def _occurrences(job: Job, now: datetime) -> list[datetime]:
    """The past occurrences, the newest last. There are enough of them for the job's runs."""
    found: list[datetime] = []
    for days in (2, 40, 400):
        found, at = [], now - timedelta(days=days)
        end = now - timedelta(days=3 if job.pause_reason else 0, minutes=6)
        while (following := next_after(parse(job.schedule), job.zone, at)) is not None and following < end:
            found.append(following)
            at = following
        if len(found) >= job.runs:
            break
    return found


def _run(job: Job, row: Scheduler, instant: datetime, end: str, chance: random.Random) -> SchedulerExecution:
    bad, ran = end in (FAILED, DISCARDED), end != SKIPPED
    seconds = min(job.seconds, 80_000) * chance.uniform(0.85, 1.0) * (6 if end == SLOW else 1)
    # A run that failed had three attempts before this one, each a minute before the next.
    started = instant + timedelta(seconds=chance.uniform(0.2, 2.5) + (3 * (seconds + 60) if bad else 0))
    error, message, frames = CAUSES.get(job.worker, ("", "", "")) if bad else ("", "", "")
    return SchedulerExecution(
        scheduler=row, execution_key=cron_key(instant), scheduled_at=instant, trigger="cron", type="worker",
        target_id=row.worker_id, target_name=job.worker, params=job.params, executed_at=instant,
        container_id="shop-web-1-17-aa01", published_at=instant if ran else None, state=STATES[end].value,
        attempt=(4 if bad else 1) if ran else 0, consumer=CONSUMER if ran else "", pid=4242 if ran else None,
        started_at=started if ran else None, finished_at=started + timedelta(seconds=seconds if ran else 0),
        error_class=error, error_message=message, fingerprint=fingerprint(error, message, frames) if error else "",
        reason=REASONS.get(end, "") if ran else missed(instant, instant, 1, NO_PRODUCER, zone_of(row)),
        missed=0 if ran else 1,
    )  # fmt: skip


def traceback_of(run: SchedulerExecution) -> str:
    """The traceback of the run's error."""
    frames = CAUSES.get(run.target_name, ("", "", ""))[2]
    return f"Traceback (most recent call last):\n  {frames}{run.error_class}: {run.error_message}\n"


def _attempts(run: SchedulerExecution) -> list[Attempt]:
    """One attempt of each number. The run's own times are those of its last attempt."""
    if run.started_at is None or run.finished_at is None:
        return []
    seconds, found = run.finished_at - run.started_at, []
    bad = bool(run.error_class)
    outcome = "failed" if bad else "cancelled" if run.state == State.CANCELLED.value else "succeeded"
    for number in range(1, run.attempt + 1):
        started = run.started_at - (run.attempt - number) * (seconds + timedelta(minutes=1))
        found.append(
            Attempt(
                execution=run, number=number, started_at=started, finished_at=started + seconds, consumer=CONSUMER,
                pid=4242, outcome=outcome, error_class=run.error_class, error_message=run.error_message,
                traceback=traceback_of(run) if bad else "",
                retry_at=started + seconds + timedelta(minutes=1) if bad and number < run.attempt else None,
            )
        )  # fmt: skip
    return found


def _output(run: SchedulerExecution, now: datetime) -> Output:
    at = run.started_at or run.scheduled_at
    lines = [(0.1, "INFO", f"Starting, parameters {run.params}"), (0.4, "OUT", "page 1 of 3: 200 rows")]
    lines += [(0.6, "WARN", "row 117 has no postal code; the last known one is used")]
    lines += [(0.9, "ERROR", run.error_message)] if run.error_class else [(0.9, "SUCCESS", "600 rows are stored")]
    text = "".join(f"{(at + timedelta(seconds=after)):%Y-%m-%dT%H:%M:%S.%f}"[:-3] + f"Z {level} {said}\n"
                   for after, level, said in lines)  # fmt: skip
    return Output(execution=run, attempt=run.attempt, sequence=0, text=text, created_at=now)
