"""Measures `manage.py audit_occurrences`, and whether it finds injected faults and nothing else.

Start it with `python -m benchmarks.occurrence_audit --rows 1000000 [--database URL]`. The database must be empty. Each
schedule has 1,000 executions of one of five cron expressions. Ten of them are taken away, five are doubled, and five
are moved to an instant that was not due. The audit must name these twenty, within `SECONDS`. The last line says PASS or
FAIL, and the exit code says the same.
"""

from __future__ import annotations

import argparse
import io
import json
import random
import resource
import sys
import tempfile
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from benchmarks.site import enter

EACH = 1_000
CRONS = ("* * * * *", "*/5 * * * *", "7 * * * *", "0 */2 * * *", "0,30 8-18 * * 1-5")
SECONDS = 60.0


def main() -> int:
    """Fill the database, inject the faults, run the audit and print the result."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.occurrence_audit")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--database", default="", help="default: SQLite in a folder of its own")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="occurrence-audit-") as name:
        enter(Path(name), options.database, CRON_RETENTION_DAYS="36500", CRON_TIMEZONE="Europe/Madrid")
        begin = time.perf_counter()
        keys = fill(options.rows // EACH)
        print(f"{len(keys) * EACH} executions made in {time.perf_counter() - begin:.0f} s", flush=True)
        wanted = inject(keys, random.Random(options.seed))
        before, begin = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.perf_counter()
        processor = time.process_time()
        found = audit()
        seconds, processor = time.perf_counter() - begin, time.process_time() - processor
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    speed = f"{found['executions'] / seconds:.0f} executions/s"
    print(f"audited in {seconds:.1f} s, {processor:.1f} s of the processor, {speed}, {grown:.0f} MiB more memory")
    print(f"gaps {found['gaps']}, doubles {found['doubles']} (seed {options.seed})")
    named = {(one["fault"], one["schedule"], one["at"]) for one in found["faults"]}
    passed = named == wanted and seconds <= SECONDS
    print("PASS" if passed else f"FAIL: {sorted(named ^ wanted)[:10]}")
    return 0 if passed else 1


def fill(count: int) -> list[int]:
    """Make `count` schedules with a first revision and `EACH` executions. Returns their ids."""
    from django.db import connection

    from scheduling.core.cron import last_between, parse
    from scheduling.core.due_between import due_between
    from scheduling.core.occurrences import cron_key
    from scheduling.models import Scheduler, ScheduleRevision, SchedulerExecution, Worker
    from scheduling.producer.changed_schedules import ChangedSchedules

    now, worker = datetime.now(UTC), Worker.objects.get(name="tests.noop")
    Scheduler.objects.all().delete()
    made = [Scheduler(worker=worker, schedule=CRONS[number % len(CRONS)]) for number in range(count)]
    Scheduler.objects.bulk_create(made, batch_size=500)
    schedules = dict(Scheduler.objects.order_by("pk").values_list("pk", "schedule"))
    begins: dict[str, datetime] = {}
    templates: dict[str, int] = {}
    for pk, cron in schedules.items():
        if cron in templates:
            continue
        far = now - timedelta(days=400)
        instants = list(due_between({"schedule": cron}, "Europe/Madrid", far, now))[-EACH - 1 :]
        templates[cron], begins[cron] = pk, instants[0]
        assert last_between(parse(cron), "Europe/Madrid", far, now) == instants[-1]
        SchedulerExecution.objects.bulk_create(
            (
                SchedulerExecution(
                    scheduler_id=pk, execution_key=cron_key(at), scheduled_at=at, trigger="cron", type="worker",
                    target_id=worker.pk, target_name="tests.noop", container_id="producer-1", state="succeeded",
                    executed_at=at, finished_at=at, revision=1,
                )
                for at in instants[1:]
            ),
            batch_size=500,
        )  # fmt: skip
    copied = [
        field.column for field in SchedulerExecution._meta.concrete_fields if field.name not in ("id", "scheduler")
    ]
    columns = ", ".join(map(connection.ops.quote_name, copied))
    with connection.cursor() as cursor:
        for pk, cron in schedules.items():
            if templates[cron] != pk:
                cursor.execute(
                    f"INSERT INTO scheduling_schedulerexecution (scheduler_id, {columns})"
                    f" SELECT {pk}, {columns} FROM scheduling_schedulerexecution"
                    f" WHERE scheduler_id = {templates[cron]} ORDER BY id"
                )
    rounds = ChangedSchedules(pause=0)
    while ScheduleRevision.objects.count() < count:
        rounds.turn(now)
    for cron, at in begins.items():
        keys = [pk for pk, own in schedules.items() if own == cron]
        for place in range(0, len(keys), 500):
            ScheduleRevision.objects.filter(schedule__in=keys[place : place + 500]).update(at=at)
    Scheduler.objects.update(next_run_at=now)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE" if connection.vendor != "mysql" else "ANALYZE TABLE scheduling_schedulerexecution")
    return list(schedules)


def inject(keys: list[int], generator: random.Random) -> set[tuple[str, int, str]]:
    """Take ten executions away, double five, and move five. Returns the faults that the audit must name."""
    from scheduling.models import SchedulerExecution

    wanted = set()
    for number in range(20):
        rows = SchedulerExecution.objects.filter(scheduler=generator.choice(keys), attempt=0).order_by("pk")
        row = rows[generator.randrange(1, EACH - 1)]
        pk, at = row.scheduler_id or 0, row.scheduled_at
        if number < 10:
            row.delete()
            wanted.add(("gap", pk, _text(at)))
            continue
        twice = number < 15
        SchedulerExecution.objects.filter(pk=row.pk).update(attempt=1)  # no other fault takes it
        row.pk, row.execution_key, row.attempt = None, f"again-{number}", 1
        row.scheduled_at = at if twice else at + timedelta(seconds=13)
        row.save(force_insert=True)
        wanted.add(("twice" if twice else "not_due", pk, _text(row.scheduled_at)))
    return wanted


def _text(at: datetime) -> str:
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def audit() -> dict[str, object]:
    """The document of the command."""
    from django.core.management import call_command

    out = io.StringIO()
    with suppress(SystemExit):
        call_command("audit_occurrences", "--json", stdout=out)
    return json.loads(out.getvalue())


if __name__ == "__main__":
    sys.exit(main())
