"""Measures how fast the failed inbox is when the database holds many executions.

Start it with `python -m benchmarks.inbox [--database URL] [--executions N] [--failed N]`.

Django's test client requests the pages, without a web server. The first request of each page is not timed. The table
shows the median time of the following `--repeat` requests. The last two lines show how long a replay of all failures
takes: the time to start the replay, and the time to send all its messages.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from benchmarks.history import clear
from benchmarks.site import enter

CAUSES = (("KeyError", "order has no total"), ("ConnectionError", "no route to host"), ("TimeoutError", "too slow"))
CHUNK = 5_000


def main() -> int:
    """Create the rows, request the pages, print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.inbox")
    parser.add_argument("--database", default="", help="default: SQLite in a folder of its own")
    parser.add_argument("--executions", type=int, default=1_000_000)
    parser.add_argument("--failed", type=int, default=100_000, help="how many of them wait in the inbox")
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        enter(Path(name), options.database)
        history(options.executions - options.failed)
        failures(options.failed)
        analyze()
        client, measured = visitor(), options.repeat
        print(f"{options.executions} executions, {options.failed} of them failed", flush=True)
        for title, address in pages().items():
            print(f"{title:50} {milliseconds(lambda address=address: get(client, address), measured):8.0f} ms")
        print(f"{'confirm: republish all that match':50} {milliseconds(lambda: ask(client), measured):8.0f} ms")
        begun, sent = replay_seconds(options.failed)
        print(f"{'replay of all of it: started in':50} {begun:8.1f} s")
        print(f"{'replay of all of it: sent in':50} {sent:8.1f} s, {options.failed / sent:.0f}/s of sweeping")
    return 0


def groups_seconds(count: int = 5_000) -> float:
    """Return how many seconds the failed inbox takes to show `count` failures, grouped by error into three groups."""
    clear()
    failures(count)
    client = visitor()
    address = pages()["groups"]
    get(client, address)
    begin = time.perf_counter()
    response = get(client, address)
    taken = time.perf_counter() - begin
    assert [group.count for group in response.context["groups"].rows] == [count // 2, count * 3 // 10, count // 5]
    return taken


def failures(count: int) -> None:
    """Create failures of the last three weeks. 50 % have the first cause, 30 % the second and 20 % the third."""
    from scheduling.core.fingerprint import fingerprint

    kinds = [0] * 5 + [1] * 3 + [2] * 2
    groups = [fingerprint(name, message) for name, message in CAUSES]
    insert(
        count,
        lambda number: {
            "state": "failed", "attempt": 4, "reason": "All 3 retries have been used.",
            "error_class": CAUSES[kinds[number % 10]][0], "fingerprint": groups[kinds[number % 10]],
            "error_message": f"{CAUSES[kinds[number % 10]][1]}\n{'as the log says in many words ' * 10}",
        },
    )  # fmt: skip


def history(count: int) -> None:
    """Create succeeded executions."""
    insert(count, lambda _number: {"state": "succeeded", "attempt": 1})


def insert(count: int, columns: Callable[[int], dict[str, Any]]) -> None:
    """Create executions that are evenly spread over the last three weeks.

    The executions belong to twenty schedules. The schedules run four workers.

    Args:
        columns: takes the number of an execution, and returns the values of the remaining columns.
    """
    from django.utils import timezone as clock

    from scheduling.models import Scheduler, SchedulerExecution, Worker

    rows = list(Scheduler.objects.filter(description__startswith="inbox bench"))
    if not rows:
        workers = list(Worker.objects.filter(name__startswith="tests.").order_by("name")[:4])
        for number in range(20):
            worker = workers[number % len(workers)]
            rows.append(Scheduler.objects.create(worker=worker, description=f"inbox bench {number}", schedule="@daily"))
    names = dict(Worker.objects.values_list("pk", "name"))
    begin, span = clock.now() - timedelta(days=21), timedelta(days=21)
    place = SchedulerExecution.objects.count()
    for first in range(0, count, CHUNK):
        made = []
        for number in range(first, min(first + CHUNK, count)):
            row, at = rows[number % len(rows)], begin + span * (number / count)
            made.append(
                SchedulerExecution(
                    scheduler=row, execution_key=f"bench-{place + number}", scheduled_at=at, trigger="cron",
                    type="worker", target_id=row.worker_id, target_name=names[row.worker_id or 0], params={"n": number},
                    executed_at=at, container_id="bench", published_at=at, started_at=at, finished_at=at,
                    consumer="bench-1", **columns(number),
                )
            )  # fmt: skip
        SchedulerExecution.objects.bulk_create(made, batch_size=500)


def analyze() -> None:
    """Update the statistics of the query planner. A database in production does this regularly."""
    from django.db import connection

    table = "scheduling_schedulerexecution"
    said = {"sqlite": "ANALYZE", "mysql": f"ANALYZE TABLE {table}", "postgresql": f"VACUUM ANALYZE {table}"}
    with connection.cursor() as cursor:
        cursor.execute(said[connection.vendor])


def visitor() -> Any:
    """A test client that is signed in as a superuser."""
    from django.contrib.auth.models import User
    from django.test import Client
    from django.test.utils import setup_test_environment

    if not hasattr(visitor, "ready"):
        setup_test_environment()  # for `response.context`
        visitor.ready = True  # type: ignore[attr-defined]
    client = Client()
    client.force_login(User.objects.get_or_create(username="bench", is_staff=True, is_superuser=True)[0])
    return client


def pages() -> dict[str, str]:
    """The URLs of the pages, by title."""
    from django.urls import reverse

    from scheduling.models import Scheduler

    inbox = reverse("admin:scheduling_failedexecution_changelist")
    schedule = Scheduler.objects.filter(description__startswith="inbox bench").first()
    queries: dict[str, dict[str, Any]] = {
        "inbox": {},
        "inbox, page 50": {"p": 50},
        "groups": {"group": "error"},
        "error class": {"error_class": "TimeoutError"},
        "error class, groups": {"error_class": "TimeoutError", "group": "error"},
        "type": {"type": "worker"},
        "target": {"target_name": "tests.noop"},
        "schedule": {"scheduler": schedule.pk if schedule else 0},
        "last hour": {"age": "1h"},
        "older than 30 days": {"age": "old"},
        "search, many found": {"q": "no route"},
        "search, nothing found": {"q": "nothing like it"},
    }
    return {title: f"{inbox}?{urlencode(query)}" for title, query in queries.items()}


def get(client: Any, address: str) -> Any:
    """Request a page. The answer must have the status 200."""
    response = client.get(address)
    assert response.status_code == 200, (address, response.status_code)
    return response


def ask(client: Any) -> None:
    """Request the confirmation page for republishing all matching failures."""
    data = {"action": "republish_selected", "select_across": "1", "_selected_action": "all"}
    response = client.post(pages()["inbox"], data)
    assert response.status_code == 200
    assert response.context["c"].type_count


def milliseconds(do: Callable[[], object], repeat: int) -> float:
    """The median time of `repeat` calls, in milliseconds. One call before these calls is not timed."""
    do()
    taken = []
    for _ in range(repeat):
        begin = time.perf_counter()
        do()
        taken.append(time.perf_counter() - begin)
    return statistics.median(taken) * 1000


def replay_seconds(count: int) -> tuple[float, float]:
    """Replay all failures, and return two times in seconds.

    The first is the time of the request that starts the replay. The second is the time that the sweeps need to send all
    messages.
    """
    from django.utils import timezone as clock

    from scheduling.broker import get_broker
    from scheduling.inbox import replay_sweep
    from scheduling.models import Replay, SchedulerExecution

    client, broker = visitor(), get_broker()
    data = {"action": "republish_selected", "select_across": "1", "_selected_action": "all"}
    page = client.post(pages()["inbox"], data)
    answer: dict[str, Any] = dict(page.context["c"].hidden)
    begin = time.perf_counter()
    client.post(pages()["inbox"], {**answer, "canary": "1", "typed": str(count)})
    begun = time.perf_counter() - begin
    made = Replay.objects.get()
    assert made.total == count, made.total
    SchedulerExecution.objects.filter(pk=made.canary).update(state="succeeded")
    begin = time.perf_counter()
    while made.is_open:
        replay_sweep.sweep(broker, clock.now())
        made.refresh_from_db()
    assert (made.state, made.sent) == ("done", count)
    return begun, time.perf_counter() - begin


if __name__ == "__main__":
    sys.exit(main())
