"""Makes tasks of Celery beat by a seed: each field of each kind of schedule is used, and some rows are nonsense."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

ZONES = (
    "UTC", "UTC", "Europe/Madrid", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "Africa/Casablanca",
    "America/Havana", "Pacific/Chatham",
)  # fmt: skip
MONTHS, WEEKDAYS = ("jan", "Feb", "march", "SEP", "december"), ("sun", "Mon", "wednesday", "FRI", "sat")
TASKS = ("tests.noop", "tests.give", "proj.tasks.mapped")
UNKNOWN = "proj.tasks.unknown"

AGE = timedelta(seconds=30)
"""So long before the import the tasks were made, while beat ran."""


class Seeded:
    """The tasks.

    Args:
        models: `django_celery_beat.models`.
        now: when the import will be.
    """

    def __init__(self, models: Any, seed: int, now: datetime) -> None:
        self.models, self.now, self._random = models, now, Random(seed)

    def make(self, count: int) -> None:
        """Make so many tasks."""
        for number in range(count):
            kind = self._random.choices(("crontab", "interval", "clocked", "solar"), (70, 18, 8, 4))[0]
            self._task(number, kind, getattr(self, f"_{kind}")())

    def _task(self, number: int, kind: str, schedule: Any) -> None:
        random, now = self._random, self.now
        task = self.models.PeriodicTask(
            name=f"Task {number}" if random.random() < 0.5 else f"task-{number}",
            task=random.choices((*TASKS, UNKNOWN), (50, 35, 10, 5))[0],
            one_off=kind == "clocked" or random.random() < 0.1,
            **{kind: schedule},
        )
        if task.task == "tests.give":
            task.kwargs = json.dumps({"value": number})
        if random.random() < 0.03:
            task.args = "[1]"
        if random.random() < 0.2:
            task.queue, task.priority, task.headers = "low", random.randint(0, 9), '{"a": "b"}'
        if random.random() < 0.15:
            task.expires = now + timedelta(seconds=random.randint(1, 400 * 86_400))
        elif random.random() < 0.2:
            task.expire_seconds = random.randint(1, 86_400)
        if random.random() < 0.2:
            task.start_time = now + timedelta(minutes=random.randint(-500_000, 500_000))
        self._history(task, kind, schedule)
        task.save()

    def _history(self, task: Any, kind: str, schedule: Any) -> None:
        """Whether it is enabled, and when it has run. What is due at this moment has run: beat is prompt."""
        random, now = self._random, self.now
        task.enabled = random.random() < 0.9
        has_run = random.random() < (0.1 if task.one_off else 0.8) or (task.start_time or now) < now
        # beat has run a task that was due once meanwhile, and would not run it again
        has_run |= kind == "interval" and task.one_off and schedule.schedule.seconds <= AGE.total_seconds()
        if has_run:
            task.total_run_count = 3
            if task.enabled:  # beat forgets the last run of a task that is disabled
                longest = schedule.schedule.seconds if kind == "interval" else 86_400
                task.last_run_at = now - timedelta(seconds=random.randint(1, int(max(1, min(longest, 400 * 86_400)))))

    # --- schedules

    def _crontab(self) -> Any:
        random = self._random
        usual = random.random() < 0.35
        return self.models.CrontabSchedule.objects.create(
            minute=str(random.randint(0, 59)) if usual or random.random() < 0.5 else self._field(0, 59),
            hour=str(random.randint(0, 23)) if random.random() < 0.4 else self._field(0, 23),
            day_of_month="*" if usual or random.random() < 0.3 else self._days(),
            month_of_year="*" if random.random() < 0.6 else self._field(1, 12, MONTHS),
            day_of_week="*" if usual and random.random() < 0.5 else self._field(0, 6, WEEKDAYS),
            timezone=random.choice(ZONES),
        )

    def _days(self) -> str:
        """Often whole weeks, which can be said beside a weekday."""
        whole = ("1-7", "8-14", "15-21", "22-28", "29-31", "1-7,15-21", "1", "*/2", "1,8-14", "29-30", "13")
        return self._random.choice(whole) if self._random.random() < 0.5 else self._field(1, 31)

    def _field(self, low: int, high: int, names: tuple[str, ...] = ()) -> str:
        random = self._random

        def number() -> str:
            return random.choice(names) if names and random.random() < 0.4 else str(random.randint(low, high))

        forms = (
            lambda: "*",
            lambda: f"*/{random.randint(1, high + 5)}",
            number,
            lambda: f"{number()}-{number()}",
            lambda: f"{number()}-{number()}/{random.randint(1, 6)}",
            lambda: ",".join((number(), f"{number()}-{number()}", number())),
            lambda: ", ".join((str(random.randint(low, high)), str(random.randint(low, high)))),
        )
        return random.choices(forms, (25, 15, 20, 15, 10, 10, 5))[0]()

    def _interval(self) -> Any:
        lengths = {"days": (1, 40), "hours": (1, 100), "minutes": (1, 3_000), "seconds": (1, 100_000)}
        period = self._random.choice((*lengths, "microseconds"))
        if period == "microseconds":
            every = self._random.choice((1, 500_000, 5_000_000, 1_801_000_000))
        else:
            every = self._random.randint(*lengths[period])
        return self.models.IntervalSchedule.objects.create(every=every, period=period)

    def _clocked(self) -> Any:
        at = self.now + timedelta(seconds=self._random.randint(-10 * 86_400, 700 * 86_400))
        return self.models.ClockedSchedule.objects.create(clocked_time=at.astimezone(UTC))

    def _solar(self) -> Any:
        random = self._random
        return self.models.SolarSchedule.objects.create(
            event=random.choice(("sunrise", "sunset", "dawn_civil", "solar_noon")),
            latitude=round(random.uniform(-60, 60), 6),
            longitude=round(random.uniform(-180, 180), 6),
        )
