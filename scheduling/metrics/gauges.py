"""Looks at the present state of the installation. Each look reads a bounded number of rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime

from scheduling.core.tallies import number
from scheduling.execution.retention.windows import savepoint
from scheduling.logs import get_logger
from scheduling.metrics import names
from scheduling.metrics.names import Metric
from scheduling.metrics.waiting_work import waiting_work
from scheduling.models import Process, Scheduler
from scheduling.models.counts import counts
from scheduling.models.newest import oldest_failure
from scheduling.models.plan import FIRST_INSTANT
from scheduling.models.process import DRAINING
from scheduling.models.visibility import EVERYTHING
from scheduling.monitoring.findings import watched
from scheduling.monitoring.findings.present import Present
from scheduling.processes.database import is_away
from scheduling.processes.guard import guard

log = get_logger(__name__)

MOST_SILENT = 1_000

Value = tuple[Metric, tuple[str, ...], float]
"""A metric, the values of its labels, and its value."""


def gauges(now: datetime) -> list[Value]:
    """The values of all gauges. If a row cannot be used, only the gauges of its group are missing.

    Raises:
        django.db.DatabaseError: the database cannot be reached.
    """
    found: list[Value] = []
    failed = 0
    groups: tuple[Callable[[datetime], Iterator[Value]], ...] = (_lag, _inbox, _processes, _work, _stops)
    for group in groups:
        try:
            with savepoint():
                found += list(group(now))
        except Exception as error:
            if is_away(error):
                raise
            failed += 1
            log.warning("Some metrics are missing: %s: %s", type(error).__name__, error)
    return [*found, (names.LOOKS_FAILED, (), float(failed))]


def _lag(now: datetime) -> Iterator[Value]:
    due = Scheduler.objects.filter(status=True, next_run_at__gte=FIRST_INSTANT, next_run_at__lt=now)
    oldest = due.order_by("next_run_at").values_list("next_run_at", flat=True).first()
    yield names.LAG, (), _age(oldest, now)


def _inbox(now: datetime) -> Iterator[Value]:
    size = counts({"inbox": [watched.failed(now)]})["inbox"].number
    yield names.INBOX, (), float(size)
    yield names.INBOX_OLDEST, (), _age(oldest_failure(EVERYTHING), now) if size else 0.0


def _processes(now: datetime) -> Iterator[Value]:
    alive = Present(now).alive
    silent = Counter(watched.fell_silent(now).values_list("kind", flat=True)[:MOST_SILENT])
    for kind in Process.Kind.values:
        yield names.PROCESSES, (kind, "alive"), float(sum(process.kind == kind for process in alive))
        yield names.PROCESSES, (kind, "silent"), float(silent[kind])
        beats = [process.heartbeat_at for process in alive if process.kind == kind]
        newest = max((beat for beat in beats if isinstance(beat, datetime)), default=None)  # SQLite stores any type
        if newest is not None:
            yield names.HEARTBEAT, (kind,), _age(newest, now)
    taking = [process for process in alive if process.kind == Process.Kind.CONSUMER and not process.held]
    infos = [(process, process.info if isinstance(process.info, dict) else {}) for process in taking]
    yield names.SLOTS, (), float(sum(number(row.concurrency) or 0 for row, info in infos if not info.get(DRAINING)))
    yield names.SLOTS_BUSY, (), float(sum(number(info.get("running")) or 0 for _row, info in infos))


def _work(now: datetime) -> Iterator[Value]:
    work = waiting_work(now)
    for (state, queue), count in sorted(work.open.items()):
        yield names.OPEN, (state, queue), float(count)
    for queue, slots in work.needed().items():
        yield names.SLOTS_NEEDED, (queue,), float(slots)


def _stops(now: datetime) -> Iterator[Value]:
    found = counts({rows: [rows(now)] for rows in (watched.open_breakers, watched.paused_work)})
    yield names.BREAKERS, (), float(found[watched.open_breakers].number)
    yield names.PAUSES, (), float(found[watched.paused_work].number)
    yield names.HELD, (), float(guard.look() is not None)


def _age(instant: datetime | None, now: datetime) -> float:
    return 0.0 if instant is None else max(0.0, (now - instant).total_seconds())
