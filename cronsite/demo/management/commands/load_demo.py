"""`load_demo`: schedules that show a success, a retry, a failure and a long run; groups for those who look at them."""

from __future__ import annotations

from argparse import ArgumentParser
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import models, transaction

from reports.models import Report
from scheduling.broker import get_broker
from scheduling.dispatch import run_now
from scheduling.management.groups import make_groups
from scheduling.models import Scheduler, Worker
from scheduling.targets import sync_targets


@dataclass(frozen=True)
class Demo:
    """A demo schedule: its description, which is how it is found again, its times and the worker that it runs."""

    description: str
    schedule: str
    worker: str
    params: dict[str, Any] = field(default_factory=dict)


DEMOS = (
    Demo("Demo: greets each minute", "* * * * *", "demo.greet", {"name": "operator"}),
    Demo("Demo: fails twice, then works", "*/2 * * * *", "demo.flaky"),
    Demo("Demo: always fails", "*/30 * * * *", "demo.broken"),
    Demo("Demo: runs for a minute", "*/5 * * * *", "demo.slow"),
)
REVIEW = "Demo: reviews the failures each night"
REVIEW_CONTROLLER = "failure_review"


class Command(BaseCommand):
    """Makes the demo schedules and groups that are missing, and runs each schedule once at its making."""

    help = (
        "Create the demo schedules that are missing and run each once; create the groups viewer, operator and editor."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """--once."""
        parser.add_argument(
            "--once",
            action="store_true",
            help="Do nothing when any demo schedule is there: whoever deleted the others does not want them back.",
        )

    def handle(self, *_args: Any, once: bool, **_options: Any) -> None:
        """Create, run, say what was done."""
        if once and Scheduler.objects.filter(description__startswith="Demo: ").exists():
            return
        sync_targets()
        with transaction.atomic():
            created = [scheduler for scheduler in [*map(_make, DEMOS), _make_review()] if scheduler is not None]
        with closing(get_broker()) as broker:
            for scheduler in created:
                run_now(scheduler, broker, by="load_demo")
        groups = [made.name for made in make_groups() if made.created]
        if groups:
            self.stdout.write(f"Made the groups {', '.join(groups)}.")
        self.stdout.write(f"Made {len(created)} demo schedules." if created else "All demo schedules are there.")


def _make(demo: Demo) -> Scheduler | None:
    try:
        worker = Worker.objects.get(name=demo.worker)
    except Worker.DoesNotExist:
        raise CommandError(f"There is no worker {demo.worker}. Set CRON_DEMO=1, which installs the demo.") from None
    return _missing(demo.description, schedule=demo.schedule, worker=worker, params=demo.params)


def _make_review() -> Scheduler | None:
    report: models.Model | None = Report.objects.filter(controller=REVIEW_CONTROLLER).first()
    return _missing(REVIEW, schedule="0 6 * * *", report=report) if report is not None else None


def _missing(description: str, **columns: Any) -> Scheduler | None:
    # Not get_or_create: an operator may have copied the schedule with its description.
    if Scheduler.objects.filter(description=description).exists():
        return None
    return Scheduler.objects.create(description=description, **columns)
