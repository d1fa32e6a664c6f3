"""Make the database server read-only under a steady load, and measure how the processes go on afterwards.

    python -m benchmarks.read_only --database postgres://… --admin postgres://…
    python -m benchmarks.read_only --database mysql://… --admin mysql://…

`--admin` is a user that may change the setting of the server. On MariaDB, `--database` must name a user without the
privilege READ_ONLY ADMIN, because the setting does not bind such a user. The setting holds for the whole server.

Exit code 0 means that every run has ended, that every slot is free, that the next start came within 6 s, and that the
doctor named the cause.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import unquote, urlsplit

from benchmarks.chaos_fleet import Fleet
from benchmarks.site import ROOT, enter

RUNS_PER_SECOND = 20
NEXT_START_SECONDS = 6.0


def main() -> int:
    """Run the trial and print the result of each outage."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.read_only")
    parser.add_argument("--database", required=True)
    parser.add_argument("--admin", required=True)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long the server is read-only")
    parser.add_argument("--times", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="read-only-") as name:
        enter(Path(name), options.database)
        fleet = Fleet(Path(name))
        fleet.start("producer-0", "run_scheduler")
        fleet.start("consumer-0", "run_worker", "--concurrency", "8")
        try:
            good = trial(options)
        finally:
            set_read_only(options.admin, on=False)
            fleet.stop()
    return 0 if good else 1


def trial(options: argparse.Namespace) -> bool:
    """Load the consumer, cause the outages, and judge what happened."""
    from django.db import connection

    from scheduling.models import Process, SchedulerExecution
    from tests.factories import ManualExecutionFactory, SchedulerFactory

    pause = 20.0
    total = round((options.times * (options.seconds + pause) + pause) * RUNS_PER_SECOND)
    row = SchedulerFactory(rare=True, handler="tests.mark", params={"seconds": 0.2})
    executions = ManualExecutionFactory.bulk(total, scheduler=row)
    begin = datetime.now(UTC) + timedelta(seconds=5)
    for number, execution in enumerate(executions):
        execution.wake_at = begin + timedelta(seconds=number / RUNS_PER_SECOND)
    SchedulerExecution.objects.bulk_update(executions, ["wake_at"], batch_size=500)
    good = True
    time.sleep(5)
    for number in range(options.times):
        time.sleep(pause)
        set_read_only(options.admin, on=True)
        time.sleep(options.seconds / 2)
        named = "read-only" in doctor()
        time.sleep(options.seconds / 2)
        set_read_only(options.admin, on=False)
        writable = datetime.now(UTC)
        connection.close()
        delay = next_start(writable)
        print(f"outage {number + 1}: next start after {delay:.1f} s, the doctor named it: {named}", flush=True)
        good = good and named and delay <= NEXT_START_SECONDS
    deadline = time.monotonic() + 120
    left = SchedulerExecution.objects.exclude(state="succeeded")
    while left.exists() and time.monotonic() < deadline:
        time.sleep(0.5)
    time.sleep(6)  # until the next heartbeat
    busy = [process.info.get("running") for process in Process.objects.filter(kind="consumer")]
    again = SchedulerExecution.objects.filter(attempt__gt=1).count()
    print(
        f"{total} runs, {left.count()} not succeeded, {again} with a second attempt, slots in use: {busy}", flush=True
    )
    return good and not left.exists() and not any(busy)


def next_start(writable: datetime) -> float:
    """How many seconds after this instant the next attempt started; 60 if none did."""
    from scheduling.models import SchedulerExecution

    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        started = SchedulerExecution.objects.filter(started_at__gte=writable).order_by("started_at").first()
        if started is not None and started.started_at is not None:
            return (started.started_at - writable).total_seconds()
        time.sleep(0.1)
    return 60.0


def doctor() -> str:
    """What the doctor prints about the database."""
    arguments = [sys.executable, "manage.py", "doctor", "--only", "database"]
    return subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True, check=False).stdout


def set_read_only(url: str, *, on: bool) -> None:
    """Change the setting of the server."""
    parts = urlsplit(url)
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    if parts.scheme == "mysql":
        import MySQLdb

        server = MySQLdb.connect(host=parts.hostname, port=parts.port or 3306, user=user, password=password)
        statements = [f"SET GLOBAL read_only = {int(on)}"]
    else:
        import psycopg

        name = parts.path.strip("/") or "postgres"
        server = psycopg.connect(
            host=parts.hostname, port=parts.port or 5432, user=user, password=password, dbname=name, autocommit=True
        )
        value = "on" if on else "off"
        statements = [f"ALTER SYSTEM SET default_transaction_read_only = {value}", "SELECT pg_reload_conf()"]
        if not on:
            statements = [
                "SET default_transaction_read_only = off",
                "ALTER SYSTEM RESET default_transaction_read_only",
                "SELECT pg_reload_conf()",
            ]
    cursor = server.cursor()
    for statement in statements:
        cursor.execute(statement)
    server.close()


if __name__ == "__main__":
    sys.exit(main())
