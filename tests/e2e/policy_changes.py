"""Changes of schedules and calendars, in the way of the form and with plain SQL. It records when they were made."""

from __future__ import annotations

import random
import time
from collections import Counter

from scheduling.models import Calendar, Scheduler, SchedulerExecution
from scheduling.models.calendar import CalendarState
from scheduling.models.plan import PlanState
from scheduling.operations.actor import Actor
from scheduling.operations.schedules import change
from tests.e2e.policy_mix import columns, entries, windows
from tests.e2e.policy_model import SLACK, History, Model
from tests.e2e.policy_rules import Policy
from tests.factories import CalendarFactory, UserFactory
from tests.support import wait_for


class Changes:
    """See above. `problems` are those that only a look at the right moment shows.

    Args:
        seconds: how long the calendars exclude something.
    """

    def __init__(self, pick: random.Random, seconds: float) -> None:
        self.pick, self.model, self._seconds = pick, Model(), seconds
        self.done: Counter[str] = Counter()
        self.problems: list[str] = []
        self.resume_at: dict[int, float] = {}
        """When paused schedules are to be resumed."""
        self._actor = Actor(UserFactory(superuser=True, username="ann"))
        self.calendars = [self._calendar(place) for place in range(2)]

    def _calendar(self, place: int) -> int:
        found = windows(self.pick, time.time(), self._seconds, place, f"version 0 of calendar {place}")
        row = CalendarFactory(name=f"calendar {place}", timezone="UTC", entries=entries(found))
        self.model.calendars[row.pk] = History(found)
        return row.pk

    def change(self, pk: int, policy: Policy) -> None:
        """Edit a schedule in the way of the form, or with plain SQL."""
        history = self.model.stories[pk].policies
        former, wanted = columns(history.now), columns(policy)
        values = {name: value for name, value in wanted.items() if value != former[name]}
        if not values:
            return
        before = time.time()
        if self.pick.random() < 0.5:
            Scheduler.objects.filter(pk=pk).update(**values)
            history.change(before, float("inf"), policy)
            return
        if "calendar_id" in values:
            found = values.pop("calendar_id")
            values["calendar"] = None if found is None else Calendar.objects.get(pk=found).name
        change(self._actor, pk, values)
        history.change(before, time.time(), policy)

    def edit_calendar(self) -> None:
        place = self.pick.randrange(2)
        pk = self.calendars[place]
        history = self.model.calendars[pk]
        if not history.is_known:
            return
        label = f"version {self.done['calendar'] + 1} of calendar {place}"
        found, before = windows(self.pick, time.time(), self._seconds, self.pick.randrange(2), label), time.time()
        if self.pick.random() < 0.5:
            Calendar.objects.filter(pk=pk).update(entries=entries(found))
        else:
            row = Calendar.objects.get(pk=pk)
            row.entries = entries(found)
            row.save()
        history.change(before, float("inf"), found)
        self.done["calendar"] += 1

    def look(self) -> None:
        """Note which changes all processes know, and which schedules their own rules have paused."""
        now = time.time()
        known = {pk for pk, state in Calendar.objects.values_list("pk", "state") if state == CalendarState.CURRENT}
        for pk in known:
            self.model.calendars[pk].settle(now)
        rows = Scheduler.objects.values_list("pk", "plan_state", "plan_error", "paused_for", "paused_at")
        for pk, state, error, rule, paused_at in rows:
            history = self.model.stories[pk].policies
            if error:
                self.problems.append(f"schedule {pk} is set aside: {error}")
            if rule and paused_at is not None and history.now.active and history.is_known:
                history.change(paused_at.timestamp(), now, history.now._replace(active=False))
                self.resume_at.setdefault(pk, now + self.pick.uniform(2, 6))
                self.done[f"paused by its {rule}"] += 1
            elif state != PlanState.STALE:
                history.settle(now)
            if history.now.failures and history.now.active and history.is_known and self._must_be_paused(pk, now):
                self.problems.append(f"schedule {pk} goes on, although its last runs have failed")

    def _must_be_paused(self, pk: int, now: float) -> bool:
        story = self.model.stories[pk]
        rows = SchedulerExecution.objects.filter(scheduler=pk, state__in=["succeeded", "failed"]).order_by("-pk")
        most = story.policies.now.failures or 0
        ends = [(state, at.timestamp()) for state, at in rows.values_list("state", "finished_at")[:most]]
        if len(ends) < most or any(state != "failed" for state, _at in ends):
            return False
        last = max(at for _state, at in ends)
        # If the consumer is killed that has recorded a failure, a producer pauses the schedule within two minutes.
        grace = 180.0 if self.model.is_outage(last) else 2 * SLACK
        return min(at for _state, at in ends) > story.policies.since + SLACK and last < now - grace

    def settled(self) -> None:
        def is_settled() -> bool:
            self.look()
            histories = [*self.model.calendars.values(), *(story.policies for story in self.model.stories.values())]
            return all(history.is_known for history in histories)

        wait_for(is_settled, "the processes know all changes", 60)
