"""Schedules that wait for another one are driven at random beside a model: ends, kills, republishes, runs by hand.

`TEST_AFTER_STEPS=3000` is the full volume. `TEST_SEED` chooses the events.
"""

from __future__ import annotations

import os
import random
from datetime import datetime, timedelta

import pytest

from scheduling.core.lifecycle import OPEN_STATES
from scheduling.execution.cancel import cancel
from scheduling.execution.run_now import run_now
from scheduling.inbox.actions import republish
from scheduling.models import Scheduler, SchedulerExecution
from tests.policies.after_world import FAILURE, LEASE, World, schedule
from tests.support import NOON

pytestmark = pytest.mark.django_db

STEPS = int(os.environ.get("TEST_AFTER_STEPS", "30"))
SEED = int(os.environ.get("TEST_SEED", "20261126"))
HOUR = timedelta(hours=1)
MINUTES = (0, 0, 20, 40)
"""The minute at which the first schedule is due, and those of the ones that wait for it."""
WITHIN = {"skip": 5_400, "run": 7_200, "fail": 3_600}
OPEN = {state.value for state in OPEN_STATES}


def may_start(first: Scheduler, instant: datetime) -> bool:
    """Whether the predecessor has succeeded since its last occurrence of the day. It is due at each full hour."""
    awaited = instant.replace(minute=0)
    rows = SchedulerExecution.objects.filter(scheduler=first, scheduled_at__gte=awaited, state="succeeded")
    return rows.exists()


class Watch:
    """Compares what has become of the occurrences with what the model allows, after each event."""

    def __init__(self, first: Scheduler, successors: list[Scheduler]) -> None:
        self.first, self.late = first, {row.pk: row.after_late for row in successors}
        self.known: dict[int, str] = {}
        self.counts: dict[str, int] = {}

    def look(self, world: World, *, swept: bool) -> None:
        rows = SchedulerExecution.objects.filter(scheduler__in=list(self.late), trigger="cron").order_by("pk")
        for row in rows:
            late = self.late[row.scheduler_id or 0]
            latest = max(row.scheduled_at, row.executed_at) + timedelta(seconds=WITHIN[late])
            free, over = may_start(self.first, row.scheduled_at), world.now >= latest
            before = self.known.get(row.pk, "blocked")
            self.known[row.pk] = row.state
            if row.state == "blocked":
                assert row.reason.startswith("Waits for “"), row.reason
                assert not (swept and (free or over)), (
                    f"{row.pk} waits at {world.now}, although it may start: {row.reason}"
                )
            elif before == "blocked":
                self._ended(row.state, late, free, over)

    def _ended(self, state: str, late: str, free: bool, over: bool) -> None:
        wanted = "started" if free else {"skip": "skipped", "fail": "failed", "run": "started"}[late]
        assert free or over, f"it became {state} before its time"
        found = "started" if state in OPEN or state == "succeeded" else state
        assert found == wanted, (found, wanted)
        self.counts[f"{late} {found} {free}"] = self.counts.get(f"{late} {found} {free}", 0) + 1


class Driver:
    """Lets one event after another happen."""

    def __init__(self, pick: random.Random) -> None:
        self.pick, self.world = pick, World(NOON + timedelta(minutes=1))
        self.first = schedule(description="Load")
        self.rows = [
            schedule(
                description=late, schedule=f"{minute} * * * *", after=self.first, after_late=late,
                after_within_seconds=span,
            )
            for minute, (late, span) in zip(MINUTES[1:], WITHIN.items(), strict=True)
        ]  # fmt: skip

    def step(self, watch: Watch) -> None:
        self.pass_time()
        self.world.start()
        for pk in list(self.world.running):
            if self.pick.random() < 0.5:
                self.end(SchedulerExecution.objects.get(pk=pk))
        watch.look(self.world, swept=False)
        self.interfere()
        self.world.sweep()
        watch.look(self.world, swept=True)

    def pass_time(self) -> None:
        """Let some minutes pass. What falls due meanwhile is claimed at its instant."""
        world = self.world
        until = world.now.replace(second=0) + timedelta(minutes=self.pick.randrange(1, 25))
        due = []
        for row, minute in zip([self.first, *self.rows], MINUTES, strict=True):
            instant = until.replace(minute=minute)
            due += [(at, row) for at in (instant - HOUR, instant) if world.now < at <= until]
        self.pick.shuffle(due)  # at the same instant, any of them may be claimed first
        for instant, row in sorted(due, key=lambda one: one[0]):
            world.now = instant
            world.claim(row)
        world.now = until

    def end(self, row: SchedulerExecution) -> None:
        run = self.world.running[row.pk]
        if (row.state, row.attempt) != ("running", run.delivery.message.attempt):
            del self.world.running[row.pk]
            return
        # The successors always succeed; only the ends of the first schedule matter.
        fails = row.scheduler_id == self.first.pk and self.pick.random() < 0.5
        self.world.end(row, FAILURE if fails else None)

    def interfere(self) -> None:
        """Kill the consumer, or let an operator do something with the first schedule."""
        event, world = self.pick.randrange(8), self.world
        own = SchedulerExecution.objects.filter(scheduler=self.first).order_by("-pk")
        failed, going_on = own.filter(state="failed").first(), own.filter(state__in=OPEN).first()
        if event == 0:
            world.restart()
            world.now += timedelta(seconds=LEASE + 1)
        elif event in (1, 2) and failed is not None:
            republish([failed.pk], world.broker, "ann")
            own.filter(pk=failed.pk).update(wake_at=world.now)
        elif event == 3:
            made = run_now(self.first, world.broker)
            own.filter(pk=made.pk).update(scheduled_at=world.now, wake_at=world.now)
        elif event == 4 and going_on is not None:
            cancel(going_on.pk, "ann", world.now)


def test_the_rows_agree_with_the_model() -> None:
    print(f"seed {SEED}, {STEPS} steps")  # noqa: T201 - shown if the test fails
    driver = Driver(random.Random(SEED))
    watch = Watch(driver.first, driver.rows)
    for _ in range(STEPS):
        driver.step(watch)
    kinds = {key.rsplit(" ", 1)[0] for key in watch.counts}
    assert kinds >= {"skip started", "run started", "fail started"}, watch.counts
    if STEPS >= 300:
        assert kinds >= {"skip skipped", "fail failed"}, watch.counts
        assert watch.counts.get("run started False"), watch.counts
