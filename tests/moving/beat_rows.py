"""Makes rows of the real django-celery-beat, and imports them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from scheduling.models import Scheduler
from tests.moving.calls import imported

FUTURE = datetime(2035, 3, 29, 10, 30, tzinfo=UTC)


class Beat:
    """Makes rows of the real package."""

    def __init__(self, models: Any) -> None:
        self.models = models

    def crontab(self, text: str = "0 8 * * *", zone: str = "UTC") -> Any:
        """A crontab by its five fields in the order of cron."""
        minute, hour, day, month, weekday = text.split()
        return self.models.CrontabSchedule.objects.create(
            minute=minute, hour=hour, day_of_month=day, month_of_year=month, day_of_week=weekday, timezone=zone
        )

    def task(self, name: str, task: str = "tests.noop", **columns: Any) -> Any:
        """A task; without a schedule, it runs each day at 8."""
        if not {"crontab", "interval", "clocked", "solar"} & set(columns):
            columns["crontab"] = self.crontab()
        return self.models.PeriodicTask.objects.create(name=name, task=task, **columns)

    def every(self, every: int, period: str) -> Any:
        """An interval."""
        return self.models.IntervalSchedule.objects.create(every=every, period=period)

    def at(self, instant: datetime) -> Any:
        """A clocked schedule."""
        return self.models.ClockedSchedule.objects.create(clocked_time=instant)


def do_import(*options: str) -> Any:
    ended = imported("import_celery_beat", "--json", *options)
    assert ended.out, ended.err
    return ended


def found(name: str) -> Scheduler:
    return Scheduler.objects.get(name=name)


def made() -> int:
    return Scheduler.objects.filter(description__contains="Celery beat").count()


def why(document: Any, task: Any) -> str:
    """Why a task is listed."""
    item = next(one for one in document["items"] if one["label"] == f"task {task.pk}")
    assert item["listed"]
    return str(item["why"]) + "".join(one["why"] for one in item["schedules"])
