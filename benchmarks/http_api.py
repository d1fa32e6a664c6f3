"""Measures the HTTP API beside 1,000,000 executions and 10,000 schedules.

    python -m benchmarks.http_api [--database URL]

1. The time of each list through the WSGI application of this process, without a network: for a superuser, and for a
   member of one of 20 groups that share all rows.
2. A run now by HTTP, beside `scheduling.api.run` in the same process, in alternation.
3. The latency of two pages of one `run_web` process, alone, and beside 200 followers that ask once a second for the
   output of a run (`benchmarks.http_followers`).

The exit code is 1 if a goal is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.site import enter

LISTS = ("schedulers", "executions", "failed", "failed/groups", "handlers", "processes", "health")
GROUPS, REPEAT, CALLS = 20, 20, 200
LIST_MS, RUN_TIMES = 50.0, 2.0

Ask = Callable[..., tuple[str, bytes]]


def main() -> int:
    """Fill the database if it is empty, measure, and return how many goals were missed as the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.http_api")
    parser.add_argument("--database", default="", help="default: SQLite in a folder of its own")
    parser.add_argument("--folder", default="", help="the data folder; default: a new one")
    parser.add_argument("--executions", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=20.0, help="how long the followers ask")
    parser.add_argument("--only", default="", help="lists, run or followers")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="http-api-") as name:
        folder = Path(options.folder or name)
        enter(folder, options.database, ALLOWED_HOSTS="testserver,127.0.0.1", CRON_API_PER_MINUTE="1000000")
        fill(options.executions)
        print(f"the load of the machine: {os.getloadavg()[0]:.1f}", flush=True)
        missed = 0
        if options.only in ("", "lists"):
            missed += sum(lists(who, token) for who, token in tokens().items())
        if options.only in ("", "run"):
            missed += run(tokens()["superuser"])
        if options.only in ("", "followers"):
            from benchmarks.http_followers import followers

            missed += followers(folder, options.database, tokens()["superuser"], options.seconds)
    return 1 if missed else 0


def fill(executions: int) -> None:
    """Fill the database if it is empty, and share all rows among the groups."""
    from django.contrib.auth.models import Group

    from benchmarks import groups, pages
    from scheduling.models import Scheduler

    pages.fill(executions)
    if not Scheduler.objects.filter(group__isnull=False).exists():
        Group.objects.bulk_create([Group(name=f"team {number}") for number in range(GROUPS)], ignore_conflicts=True)
        teams = Group.objects.filter(name__startswith="team ").order_by("pk").values_list("pk", flat=True)
        groups._share_out(list(teams), 1.0)


def tokens() -> dict[str, str]:
    """The secrets of a superuser, and of an editor in one of the groups."""
    from django.contrib.auth.models import Group, User

    from scheduling.management.groups import EDITOR, make_groups
    from scheduling.models import ApiToken
    from scheduling.operations.tokens import make_token

    list(make_groups())
    found = {}
    for name, is_superuser in (("superuser", True), ("member of one group", False)):
        user, _ = User.objects.get_or_create(username=f"http {name}", is_staff=True, is_superuser=is_superuser)
        user.groups.set([] if is_superuser else Group.objects.filter(name__in=["team 0", EDITOR]))
        ApiToken.objects.filter(user=user).delete()
        found[name] = make_token(user, "bench")[1]
    return found


def application(secret: str) -> Ask:
    """A function that sends a request to the WSGI application of this process. It returns the status and the body."""
    from django.core.wsgi import get_wsgi_application
    from django.test import RequestFactory

    serve, factory = get_wsgi_application(), RequestFactory(headers={"Authorization": f"Bearer {secret}"})

    def ask(method: str, path: str, body: Any = None) -> tuple[str, bytes]:
        data = "" if body is None else json.dumps(body)
        environ = factory.generic(method, f"/cron/{path}", data, "application/json").environ
        status: list[str] = []
        response: Any = serve(environ, lambda line, _headers, *_rest: status.append(line))
        try:
            return status[0], b"".join(response)
        finally:
            response.close()

    return ask


def lists(who: str, secret: str) -> int:
    """Print the median and the worst of each list. Returns how many medians exceed LIST_MS."""
    from django.db import connection

    ask, slow = application(secret), 0
    print(f"{who:40} queries, median ms,  worst, processor")
    for path in LISTS:
        ask("GET", path)  # the first request loads modules
        statements: list[str] = []

        def noted(execute: Any, sql: str, *rest: Any, found: list[str] = statements) -> Any:
            found.append(sql)
            return execute(sql, *rest)

        with connection.execute_wrapper(noted):
            status, body = ask("GET", path)
        if not status.startswith("200"):
            raise SystemExit(f"{path}: {status} {body!r}")
        used = time.process_time()
        taken = sorted(_milliseconds(lambda path=path: ask("GET", path)) for _ in range(REPEAT))
        middle, used = statistics.median(taken), (time.process_time() - used) * 1000 / REPEAT
        slow += middle > LIST_MS
        mark = " !" if middle > LIST_MS else ""
        print(f"{f'GET /{path}':40} {len(statements):7} {middle:10.0f} {taken[-1]:6.0f} {used:10.0f}{mark}", flush=True)
    return slow


def run(secret: str) -> int:
    """Print what a run now costs by HTTP, and by `scheduling.api.run`. Returns whether it costs too much."""
    from scheduling.api import run as run_from_code
    from scheduling.models import Scheduler, SchedulerExecution

    ask, schedule = application(secret), Scheduler.objects.latest("pk").pk
    last = SchedulerExecution.objects.latest("pk").pk
    kinds: dict[str, Callable[[], object]] = {
        "scheduling.api.run": lambda: run_from_code("tests.noop", {}),
        "POST /schedulers/…/run": lambda: ask("POST", f"schedulers/{schedule}/run", {}),
        "POST /targets/worker/tests.noop/run": lambda: ask("POST", "targets/worker/tests.noop/run", {}),
    }
    taken: dict[str, list[float]] = {name: [] for name in kinds}
    for _ in range(CALLS):
        for name, call in kinds.items():
            taken[name].append(_milliseconds(call))
    assert SchedulerExecution.objects.filter(pk__gt=last).count() == CALLS * len(kinds)
    SchedulerExecution.objects.filter(pk__gt=last).delete()
    base, missed = statistics.median(taken["scheduling.api.run"]), 0
    for name, values in taken.items():
        times = statistics.median(values) / base
        missed += times > RUN_TIMES
        print(f"{name:40} {statistics.median(values):7.1f} ms, {times:.2f} times", flush=True)
    return missed


def _milliseconds(call: Callable[[], object]) -> float:
    begin = time.perf_counter()
    call()
    return (time.perf_counter() - begin) * 1000


if __name__ == "__main__":
    raise SystemExit(main())
