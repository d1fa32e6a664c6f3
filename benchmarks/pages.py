"""Measures the server time of each admin page on a large history.

Start it with `python -m benchmarks.pages [--database URL] [--broker URL]`.

A superuser requests each page `--repeat` times in one process. The time of a request includes the rendering of the
answer. The table shows the number of queries, and the median, the minimum and the maximum in milliseconds.
With RabbitMQ, the option `--parked` puts messages into the failed queue. The pages must not change the number or the
order of these messages.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from benchmarks.site import enter

A = "/admin/scheduling"

LIMIT_MS = 300
MOST_QUERIES = 20


def main() -> int:
    """Set up a site and measure the pages. Returns the exit code of `measure`."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pages")
    parser.add_argument("--database", default="", help="default: SQLite in a folder of its own")
    parser.add_argument("--broker", default="database://")
    parser.add_argument("--executions", type=int, default=1_000_000)
    parser.add_argument("--parked", type=int, default=0, help="failures whose messages lie in the failed queue")
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--groups", type=int, default=0, help="share the rows among so many groups, and ask as members")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="pages-") as name:
        enter(Path(name), options.database, options.broker, ALLOWED_HOSTS="testserver")
        if options.groups:
            from benchmarks import groups

            return groups.measure(options)
        return measure(options)


def fill(executions: int) -> None:
    """Fill the database if it is empty."""
    from benchmarks import history
    from scheduling.models import SchedulerExecution

    if not SchedulerExecution.objects.exists() and executions:
        begin = time.monotonic()
        history.make(executions)
        print(f"{executions} executions made in {time.monotonic() - begin:.0f} s", flush=True)


def measure(options: argparse.Namespace) -> int:
    """Fill the database if it is empty, request every page and print the table.

    Returns 1 if a median exceeds LIMIT_MS or if the failed queue has changed, otherwise 0.
    """
    from django.contrib.auth.models import User
    from django.test import Client

    fill(options.executions)
    if options.parked:
        park(options.parked)
    before = lying()
    user, _ = User.objects.get_or_create(username="bench", is_staff=True, is_superuser=True)
    client = Client()
    client.force_login(user)
    slow = 0
    print(f"{'page':58} queries, median ms [least-most]", flush=True)
    for title, address in pages():
        number = queries(client, address)
        values = sorted(ask(client, address) for _ in range(options.repeat))
        middle = statistics.median(values)
        slow += middle > LIMIT_MS
        mark = " more than 20 queries" if number > MOST_QUERIES else ""
        print(f"{title:58} {number:3} {middle:.0f} [{values[0]:.0f}-{values[-1]:.0f}]{mark}", flush=True)
    if before is not None:
        after = lying()
        kept = before == after
        print(f"failed queue: {len(before)} messages before, {len(after or [])} after, order kept: {kept}")
        slow += not kept
    print(f"{slow} over {LIMIT_MS} ms" if slow else f"none over {LIMIT_MS} ms")
    return 1 if slow else 0


def queries(client: Any, address: str) -> int:
    """Request a page and return how many queries it made."""
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    with CaptureQueriesContext(connection) as captured:
        ask(client, address)
    return len(captured)


def ask(client: Any, address: str) -> float:
    """Request a page and return how many milliseconds the request took."""
    begin = time.perf_counter()
    response = client.get(address)
    if hasattr(response, "streaming_content"):
        b"".join(response.streaming_content)
    taken = (time.perf_counter() - begin) * 1000
    if response.status_code != 200:
        raise SystemExit(f"{address}: {response.status_code}")
    return taken


def pages() -> list[tuple[str, str]]:
    """The titles and URLs of the pages."""
    from scheduling.models import Scheduler, SchedulerExecution

    last = SchedulerExecution.objects.filter(state="succeeded").latest("id")
    failed = SchedulerExecution.objects.filter(state="failed").latest("id")
    schedule = last.scheduler_id or Scheduler.objects.latest("id").pk
    runs, inbox = f"{A}/schedulerexecution/", f"{A}/failedexecution/"
    return [
        ("dashboard", f"{A}/dashboard/"),
        *(
            (f"dashboard, {part}", f"{A}/dashboard/part/{part}/")
            for part in ("tiles", "attention", "running", "timeline", "next_day", "schedules", "heatmap")
        ),
        ("dashboard, an hour of the next day", f"{A}/dashboard/hour/{(int(time.time()) // 3600 + 2) * 3600}/"),
        ("activity", f"{A}/dashboard/activity/"),
        ("schedules", f"{A}/scheduler/"),
        ("schedules, page 100", f"{A}/scheduler/?p=100"),
        ("schedules, failing", f"{A}/scheduler/?health=failing"),
        ("schedules, healthy, of one target type", f"{A}/scheduler/?health=healthy&type=worker"),
        ("schedules, searched", f"{A}/scheduler/?q=season"),
        ("a schedule", f"{A}/scheduler/{schedule}/change/"),
        ("edit a schedule", f"{A}/scheduler/{schedule}/edit/"),
        ("add a schedule", f"{A}/scheduler/add/"),
        ("a copy of a schedule", f"{A}/scheduler/add/?copy={schedule}"),
        (
            "preview, a weekday's minutes",
            f"{A}/scheduler/preview/runs/?timezone=Europe/Madrid&schedule=*%2F7+2-5+*+*+1-5",
        ),
        ("preview, the rarest date", f"{A}/scheduler/preview/runs/?timezone=Europe/Madrid&schedule=0+0+29+2+*%2F6"),
        (
            "preview, a zone that is none",
            f"{A}/scheduler/preview/runs/?timezone={'Erope/Mdrid' * 5}&schedule=0+0+*+*+*",
        ),
        ("preview, attempts", f"{A}/scheduler/preview/retry/?max_retries=19"),
        ("run a schedule now", f"{A}/scheduler/{schedule}/run/"),
        ("did it run at 03:00?", f"{A}/scheduler/{schedule}/why/?at=03:00"),
        ("did it run 60 days ago?", f"{A}/scheduler/{schedule}/why/?at={days_ago(60)}+03:00"),
        ("a schedule's history", f"{A}/scheduler/{schedule}/history/"),
        ("executions", runs),
        ("executions, page 40", f"{runs}?p=40"),
        ("executions, succeeded", f"{runs}?state=succeeded"),
        ("executions, failed", f"{runs}?state=failed"),
        ("executions, running (none)", f"{runs}?state=running"),
        ("executions of a schedule", f"{runs}?scheduler={schedule}"),
        ("executions, slower than usual", f"{runs}?took=slow"),
        ("executions, over 1 min, last night", f"{runs}?took=1m&within=night"),
        ("executions, slower than usual, 60 days ago", f"{runs}?took=slow&to={days_ago(60)}T08:00"),
        ("executions, from and to", f"{runs}?from={days_ago(61)}T08:00&to={days_ago(60)}T08:00"),
        ("executions by duration", f"{runs}?o=-4"),
        ("executions of a schedule by duration", f"{runs}?o=-4&scheduler={schedule}"),
        ("executions, a key searched", f"{runs}?q=season-77"),
        ("executions, nothing found", f"{runs}?q=nowhere-to-be-found"),
        ("an execution", f"{runs}{last.pk}/change/"),
        ("a failed execution", f"{runs}{failed.pk}/change/"),
        ("the oldest execution", f"{runs}{SchedulerExecution.objects.earliest('id').pk}/change/"),
        ("an execution that printed 10 MB", f"{runs}{talk(failed.pk)}/change/"),
        ("its output searched, nothing found", f"{runs}{failed.pk}/change/?q=nowhere-to-be-found"),
        ("its output followed from the end", f"{runs}{failed.pk}/follow/?after=20.999.0"),
        ("its output followed from the beginning", f"{runs}{failed.pk}/follow/?after=1.0.0"),
        ("failed inbox", inbox),
        ("failed inbox by error", f"{inbox}?group=error"),
        ("failed inbox, searched", f"{inbox}?q=invoice"),
        ("edit and republish", f"{inbox}{failed.pk}/edit/"),
        ("processes", f"{A}/process/"),
        ("workers", f"{A}/worker/"),
        ("a worker with all schedules", f"{A}/worker/{last.target_id}/change/"),
    ]


def days_ago(days: int) -> date:
    """The date some days ago."""
    return date.today() - timedelta(days=days)


def talk(pk: int) -> int:
    """Store half a megabyte of output for each of an execution's twenty attempts. Returns the execution's id."""
    from django.utils import timezone as clock

    from scheduling.models import Output

    line = f"2026-03-10T12:00:00.000Z INFO {'word ' * 18}\n"
    text = line * (64 * 1024 // len(line))
    if Output.objects.filter(execution=pk).count() < 160:
        Output.objects.filter(execution=pk).delete()
        Output.objects.bulk_create(
            Output(execution_id=pk, attempt=number, sequence=sequence, text=text, created_at=clock.now())
            for number in range(1, 21)
            for sequence in range(8)
        )
    return pk


def park(count: int) -> None:
    """Create failed executions whose messages are in the broker's failed queue."""
    from django.utils import timezone as clock

    from scheduling.broker import get_broker
    from scheduling.execution.publish import park as keep
    from tests.factories import ManualExecutionFactory

    broker = get_broker()
    broker.declare([])
    columns = {"state": "failed", "finished_at": clock.now(), "published_at": None, "attempt": 1, "fingerprint": "p"}
    error = "builtins.ConnectionError"
    for row in ManualExecutionFactory.bulk(count, error_class=error, error_message="no route", **columns):
        if not keep(row, broker, clock.now(), "no route", 0):
            raise SystemExit("The broker did not confirm a message.")
    broker.close()


def lying() -> list[str] | None:
    """The ids of the messages in the failed queue, in order. None if the transport has no failed queue."""
    from scheduling.broker import get_broker

    broker = get_broker()
    try:
        if not broker.has_failed_queue:
            return None
        with broker.failed_queue() as session:
            return [message.message_id for message in session.messages]
    finally:
        broker.close()


if __name__ == "__main__":
    sys.exit(main())
