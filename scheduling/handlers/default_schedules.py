"""Makes the schedules of `@worker(schedule=)`. Each is made once; from then on it belongs to the operators."""

from __future__ import annotations

from django.db import DEFAULT_DB_ALIAS, transaction

from scheduling.handlers.registry import Handler, handlers
from scheduling.logs import get_logger
from scheduling.models import Scheduler, Worker
from scheduling.models.author import Author, AuthorKind, authored
from scheduling.models.schedule_names import DEFAULT_MARK
from scheduling.processes.database import is_away

log = get_logger(__name__)


def make_default_schedules(using: str = DEFAULT_DB_ALIAS) -> int:
    """Make the schedule of each registered worker that names one and has not got one yet.

    The row of the worker records that its schedule was made. So a schedule that operators have deleted does not come
    back, and of two processes that start at once, only one makes it.

    Returns:
        How many schedules were made.

    Raises:
        django.db.DatabaseError: the database cannot be reached.
    """
    wanted = {handler.name: handler for handler in handlers("worker") if handler.schedule}
    if not wanted:
        return 0
    rows = Worker.objects.using(using).filter(name__in=wanted, made_schedule="")
    return sum(_made(pk, wanted[name], using) for pk, name in rows.values_list("pk", "name") if name in wanted)


def _made(worker: int, handler: Handler, using: str) -> bool:
    try:
        with transaction.atomic(using=using):
            rows = Worker.objects.using(using).filter(pk=worker, made_schedule="")
            if not rows.update(made_schedule=handler.schedule):
                return False
            name = DEFAULT_MARK + handler.name
            with authored(Author(AuthorKind.CODE, "@worker(schedule=)")):
                Scheduler(name=name, worker_id=worker, schedule=handler.schedule).save(using=using)
    except Exception as error:
        if is_away(error):
            raise
        # For example, operators have given the worker's row params that do not fit. The next process tries again.
        log.error("The schedule of worker %r cannot be made: %s", handler.name, error)
        return False
    log.info("Worker %r has got its schedule: %s", handler.name, handler.schedule)
    return True


def default_of(row: Scheduler) -> str:
    """The cron expression that the code of this schedule's worker names now; empty if it names none."""
    name = (row.name or "").removeprefix(DEFAULT_MARK)
    found = [handler.schedule for handler in handlers("worker") if handler.name == name]
    return found[0] if row.is_worker_default and found else ""
