"""An installation as an operator finds it in the morning: schedules, failures of three kinds, a slow run, a pause."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, time, timedelta

from django.utils import timezone as clock

from scheduling.core.fingerprint import fingerprint
from scheduling.models import Scheduler, SchedulerExecution
from scheduling.models.process import AHEAD
from tests.admin.inbox import fill
from tests.factories import ProcessFactory, SchedulerExecutionFactory, SchedulerFactory, UserFactory, WorkerFactory

RIGHTS = [
    f"scheduling.{name}"
    for name in (
        "view_dashboard", "view_scheduler", "view_schedulerexecution", "view_failedexecution", "view_worker",
        "view_process", "view_artefact", "add_scheduler", "change_scheduler", "run_scheduler", "pause_scheduler",
        "rerun_execution", "cancel_execution", "republish_failedexecution", "discard_failedexecution",
    )
]  # fmt: skip

KINDS = {"PaymentGatewayTimeout": 150, "MissingColumn": 101, "DiskFull": 49}
"""How many failures of each kind wait in the inbox."""


def people_and_processes() -> None:
    """An operator who may also edit schedules, and one process of each kind."""
    UserFactory(username="olga", permissions=RIGHTS)
    alive = clock.now() + AHEAD  # for as long as possible: the machine may be slow
    ProcessFactory(producer=True, heartbeat_at=alive)
    ProcessFactory(heartbeat_at=alive)


def schedule(name: str, **columns: object) -> Scheduler:
    """A schedule at 03:00 in Berlin. Its parameters are a directory and a number of seconds."""
    columns = {
        "worker": WorkerFactory(name="tests.mark"),
        "schedule": "0 3 * * *",
        "params": {"seconds": 120},
        **columns,
    }
    made: Scheduler = SchedulerFactory(description=name, timezone="Europe/Berlin", **columns)
    return made


def other_schedules(count: int) -> list[Scheduler]:
    """Healthy schedules, such as every installation has dozens of."""
    made = [schedule(f"Sync of shop {number}") for number in range(1, count + 1)]
    for row in made:
        ran(row, clock.now() - timedelta(hours=9), 60)
    return made


def ran(row: Scheduler, due: datetime, seconds: float, **columns: object) -> SchedulerExecution:
    """A run that was due at an instant and took so long. Runs must be made in the order of their times."""
    made: SchedulerExecution = SchedulerExecutionFactory(
        **{
            "scheduler": row, "succeeded": True, "scheduled_at": due, "executed_at": due, "published_at": due,
            "started_at": due, "finished_at": due + timedelta(seconds=seconds), **columns,
        }
    )  # fmt: skip
    return made


def slow_run_of_last_night() -> SchedulerExecution:
    """An export that took two minutes in each of seven nights, and thirteen minutes in the last one."""
    evening = datetime.combine(clock.localdate() - timedelta(days=1), time(20, 30), clock.get_current_timezone())
    row = schedule("Customers export")
    for days in range(7, 0, -1):
        ran(row, evening - timedelta(days=days), 120)
    return ran(row, evening, 780)


def failures(kinds: Sequence[str] = tuple(KINDS)) -> None:
    """Failures of these kinds. Each kind belongs to a schedule of its own."""
    for number, kind in enumerate(kinds, 1):
        error = f"shop.errors.{kind}", f"{kind} in shop {number}"
        fill(
            KINDS[kind], scheduler=schedule(f"Import orders {number}"), error_class=error[0], error_message=error[1],
            fingerprint=fingerprint(*error),
        )  # fmt: skip


def one_failure() -> SchedulerExecution:
    """A single failure, whose parameter was wrong."""
    row = schedule("Price list")
    made: SchedulerExecution = SchedulerExecutionFactory(
        scheduler=row, failed=True, error_class="shop.errors.WrongPath", error_message="no such directory",
        fingerprint=fingerprint("shop.errors.WrongPath", "no such directory"),
    )  # fmt: skip
    return made


def paused_over_three_o_clock() -> Scheduler:
    """A schedule that was paused for two days and has been resumed. The pause left out its runs of 03:00."""
    row = schedule("Storage report")
    Scheduler.objects.filter(pk=row.pk).update(created_at=clock.now() - timedelta(days=30))
    row.status, row.paused_by, row.pause_reason = False, "anna", "storage full"
    row.save()
    Scheduler.objects.filter(pk=row.pk).update(paused_at=clock.now() - timedelta(days=2), planned_at=None)
    row.refresh_from_db()
    row.status = True
    row.save()
    return row
