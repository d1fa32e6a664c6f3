"""A site with schedules of all policies, with producers, consumers and random events."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path
from typing import Any

from django.db.models import Q
from django.utils import timezone as clock

from scheduling.core.lifecycle import OPEN_STATES
from scheduling.execution.cancel import cancel
from scheduling.execution.own_broker import own_broker
from scheduling.execution.run_now import run_now
from scheduling.inbox.actions import republish
from scheduling.models import Pause, Scheduler, SchedulerExecution
from tests.apps.sample.policed import NAME
from tests.e2e.policy_changes import Changes
from tests.e2e.policy_mix import ALONE, base, columns, expression, more
from tests.e2e.policy_model import WAITS, History, Story
from tests.e2e.policy_processes import Processes
from tests.e2e.policy_rules import Policy
from tests.factories import PauseFactory, SchedulerFactory
from tests.support import Commands, wait_for

SECONDS = float(os.environ.get("TEST_MODEL_SECONDS", "8"))
SEED = int(os.environ.get("TEST_SEED", "20261126"))
SCHEDULES = 22
MOST_OPEN = 60
FOLLOWERS = (("allow", "previous", "skip"), ("wait", "day", "run"), ("allow", "previous", "fail"))
TURN = 0.2
"""Seconds between two looks."""


class Site:
    """See above. `done` counts the events."""

    def __init__(self, commands: Commands, directory: Path, broker_url: str) -> None:
        self.pick, self.directory = random.Random(SEED), directory
        self.changes = Changes(self.pick, SECONDS)
        self.model, self.done = self.changes.model, self.changes.done
        self._pauses: list[tuple[Pause, float, float]] = []
        begin = time.time()
        own: list[dict[str, Any]] = [{"every": 3, "calendar": self.changes.calendars[0]}, {"every": 5, "spread": 2}]
        self.predecessors = [self._schedule(Policy(start=int(begin), overlap="skip", **rules), "some") for rules in own]
        self.followers = [
            self._schedule(
                Policy(self.pick.choice([4, 5, 7]), int(begin), overlap=overlap, span=span, late=late),
                "never", after=self.pick.choice(self.predecessors),
            )
            for overlap, span, late in FOLLOWERS
        ]  # fmt: skip
        for number in range(SCHEDULES - 5):
            policy = base(self.pick, number, time.time(), self.changes.calendars)
            self._schedule(policy, "often" if policy.failures else "some")
        self.processes = Processes(commands, broker_url, self.pick, self.model, SECONDS)
        self.model.outages.append((begin, time.time()))

    def _schedule(self, policy: Policy, fails: str, after: int | None = None) -> int:
        longest = min(policy.every, 5) * (1.3 if policy.is_alone and self.pick.random() < 0.4 else 0.2)
        name = f"job{len(self.model.stories)}"
        params = {"directory": str(self.directory), "name": name, "seconds": self.pick.uniform(0, longest)}
        own = {} if after is None else {"after_id": after, "after_span": policy.span, "after_late": policy.late}
        policy = policy._replace(after=after)
        before = time.time()
        row = SchedulerFactory(
            handler=NAME, schedule=expression(policy), timezone="UTC", params={**params, "fails": fails},
            after_within_seconds=WAITS, **own, **columns(policy),
        )  # fmt: skip
        self.model.stories[row.pk] = Story(row.pk, name, before, History(policy))
        return row.pk

    def work(self, until: float) -> None:
        """Let random things happen."""
        events = [
            (0.08, self.ask), (0.08, self.pause), (0.07, self.edit), (0.05, self.cancel), (0.04, self.republish),
            (0.015, self.stop_work), (0.012, self.changes.edit_calendar),
        ]  # fmt: skip
        while (now := time.time()) < until:
            for chance, event in events:
                if self.pick.random() < chance:
                    event()
            for pk in [pk for pk, at in self.changes.resume_at.items() if at <= now]:
                self.resume(pk)
            self.go_on(now)
            self.processes.turn(now)
            self.changes.look()
            time.sleep(TURN)

    def ask(self) -> None:
        if SchedulerExecution.objects.in_state(*OPEN_STATES).count() < MOST_OPEN:
            self._run(self.pick.choice(list(self.model.stories)))
            self.done["run now"] += 1

    def _run(self, pk: int) -> None:
        run_now(Scheduler.objects.get(pk=pk), own_broker(), "ann")

    def _free(self) -> list[int]:
        """The schedules that are active, and whose last change all processes know."""
        return [pk for pk, story in self.model.stories.items() if story.policies.is_known and story.policies.now.active]

    def pause(self) -> None:
        if pks := self._free():
            pk = self.pick.choice(pks)
            is_long = pk in self.predecessors and self.pick.random() < 0.3
            self.changes.change(pk, self.model.stories[pk].policies.now._replace(active=False))
            self.changes.resume_at[pk] = time.time() + (75.0 if is_long else self.pick.uniform(2, 8))
            self.done["pause"] += 1

    def resume(self, pk: int) -> None:
        story = self.model.stories[pk]
        if not story.policies.is_known:
            return
        del self.changes.resume_at[pk]
        if Scheduler.objects.filter(pk=pk, paused_for="runs").exists():
            story.resumed.append(time.time())
        self.changes.change(pk, story.policies.now._replace(active=True))

    def edit(self) -> None:
        own = [pk for pk in self._free() if pk not in (*self.predecessors, *self.followers)]
        if not own:
            return
        pk = self.pick.choice(own)
        policy = more(self.pick, self.model.stories[pk].policies.now, self.changes.calendars, 0.3)
        overlap = self.pick.choice(ALONE) if policy.is_alone else self.pick.choice(["allow", "allow", "allow", "wait"])
        self.changes.change(pk, policy._replace(overlap=overlap if self.pick.random() < 0.5 else policy.overlap))
        self.done["edit"] += 1

    def cancel(self) -> None:
        if keys := list(SchedulerExecution.objects.in_state(*OPEN_STATES).values_list("pk", flat=True)):
            cancel(self.pick.choice(keys), "ann")
            self.done["cancel"] += 1

    def republish(self) -> None:
        failed = SchedulerExecution.objects.filter(state="failed", scheduler__pause_after_failures=None)
        keys = list(failed.values_list("pk", flat=True))
        self.done["republish"] += len(republish(self.pick.sample(keys, min(2, len(keys))), own_broker(), "ann"))

    def stop_work(self) -> None:
        if not self._pauses:
            scope = self.pick.choice(
                [{"scope": "site", "name": ""}, {"scope": "handler", "type": "worker", "name": NAME}]
            )
            Pause.objects.filter(Q(**scope)).delete()
            row, now = PauseFactory(**scope, paused_at=clock.now()), time.time()
            self._pauses.append((row, now, now + self.pick.uniform(2, 6)))
            self.done["pause of work"] += 1

    def go_on(self, now: float) -> None:
        for row, since, _until in [one for one in self._pauses if one[2] <= now]:
            self.model.stops.append((since, time.time()))
            Pause.objects.filter(pk=row.pk).update(ends_at=clock.now())
            self._pauses = []

    def finish(self) -> None:
        """Resume everything, pause all schedules, and wait until nothing waits."""
        self.go_on(float("inf"))
        self.processes.finish()
        self.changes.settled()
        for pk in list(self.changes.resume_at):
            self.resume(pk)
        self.changes.settled()
        for pk, story in self.model.stories.items():
            story.until = time.time()
            self.changes.change(pk, story.policies.now._replace(active=False))
        self.changes.settled()
        wait_for(lambda: not Scheduler.objects.filter(next_run_at__isnull=False).exists(), "nothing is due", 60)
        for pk, paused_at, recorded in Scheduler.objects.values_list("pk", "paused_at", "pause_recorded_to"):
            if (over := recorded or paused_at) is not None:  # what is due in this pause is counted when it ends
                self.model.stories[pk].until = min(self.model.stories[pk].until, over.timestamp())
        rows = SchedulerExecution.objects.in_state(*OPEN_STATES)
        asked = 0.0

        def is_over() -> bool:
            nonlocal asked
            waiting = rows.filter(waits_for__isnull=False).exists()
            if waiting and time.time() > asked + 3:
                asked = time.time()
                for pk in self.predecessors:
                    self._run(pk)
            return not rows.exists()

        wait_for(is_over, "all has ended", 240)
