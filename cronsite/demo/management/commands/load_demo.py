"""`manage.py load_demo` creates schedules that show a success, a retry, a failure and a long run. The command also
creates groups for users."""

from __future__ import annotations

from argparse import ArgumentParser
from contextlib import closing
from typing import Any, NamedTuple

from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from reports.models import Report
from scheduling.broker import get_broker
from scheduling.execution.run_now import run_now
from scheduling.handlers.targets import sync_targets
from scheduling.management.groups import make_groups
from scheduling.models import Scheduler, Worker


class Demo(NamedTuple):
    """A demo schedule. The description identifies the schedule's row."""

    description: str
    schedule: str
    worker: str
    params: dict[str, Any] = {}


DEMOS = (
    Demo("Demo: greets each minute", "* * * * *", "demo.greet", {"name": "operator"}),
    Demo("Demo: fails twice, then works", "*/2 * * * *", "demo.flaky"),
    Demo("Demo: always fails", "*/30 * * * *", "demo.broken"),
    Demo("Demo: runs for a minute", "*/5 * * * *", "demo.slow"),
)
REVIEW = "Demo: reviews the failures each night"
REVIEW_CONTROLLER = "failure_review"


class Command(BaseCommand):
    """Creates the missing demo schedules and groups, and runs every new schedule once."""

    help = (
        "Create the demo schedules that are missing and run each once; create the groups viewer, operator and editor."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the option `--once`."""
        purpose = "Do nothing if any demo schedule exists: the missing ones were deleted on purpose."
        parser.add_argument("--once", action="store_true", help=purpose)

    def handle(self, *_args: Any, once: bool, **_options: Any) -> None:
        """Create what is missing, run the new schedules, and print what was done."""
        if once and Scheduler.objects.filter(description__startswith="Demo: ").exists():
            return
        sync_targets()
        with transaction.atomic():
            created = [scheduler for scheduler in [*map(_make, DEMOS), _make_review()] if scheduler is not None]
        with closing(get_broker()) as broker:
            for scheduler in created:
                run_now(scheduler, broker, by="load_demo")
        if groups := [made.name for made in make_groups() if made.created]:
            self.stdout.write(f"Made the groups {', '.join(groups)}.")
        self.stdout.write(f"Made {len(created)} demo schedules." if created else "All demo schedules are there.")


def _make(demo: Demo) -> Scheduler | None:
    try:
        worker = Worker.objects.get(name=demo.worker)
    except Worker.DoesNotExist:
        raise CommandError(f"There is no worker {demo.worker}. Set CRON_DEMO=1, which installs the demo.") from None
    return _missing(demo.description, schedule=demo.schedule, worker=worker, params=demo.params)


def _make_review() -> Scheduler | None:
    report = Report.objects.filter(controller=REVIEW_CONTROLLER).first()
    return _missing(REVIEW, schedule="0 6 * * *", report=report) if report else None


def _missing(description: str, **columns: Any) -> Scheduler | None:
    # An operator may have copied the schedule. Then several rows have this description, and `get_or_create` would fail.
    if Scheduler.objects.filter(description=description).exists():
        return None
    return Scheduler.objects.create(description=description, **columns)
