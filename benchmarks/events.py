"""Measures events (`scheduling.api.schedule_at`): how fast they are made, and what waiting ones cost others.

    python -m benchmarks.events --database postgres://... --broker amqp://... --waiting 1000000

Each step of a process and each page is measured without waiting events and then with them, in one run. The figure is
the first quartile of many, because other programs of the machine disturb some. With a broker, the executions of waiting
events are claimed; without one, they are queued.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

from benchmarks import waiting_events
from benchmarks.pages import A, ask
from benchmarks.site import enter
from benchmarks.waiting_events import LATER

CALLS = 2_000
SCHEDULES = 2_000
RUNS = 10_000
DUE = 500
"""So many schedules fall due for each claim."""

MOST = 1.3
NOISE_MS = 1.0
"""A ratio above `MOST` counts if the times differ by more than this."""


def main() -> int:
    """Measure and print each line. Returns 1 if a ratio is above `MOST`, otherwise 0."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.events")
    parser.add_argument("--database", default="", help="default: SQLite in a folder of its own")
    parser.add_argument("--broker", default="database://")
    parser.add_argument("--waiting", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=21)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="events-") as name:
        enter(Path(name), options.database, options.broker, ALLOWED_HOSTS="testserver")
        waiting_events.clear()
        make_in_one_transaction()
        waiting_events.clear()
        fill_schedules()
        before = measured(options.repeat)
        waiting_events.fill(options.waiting)
        after = measured(options.repeat)
        make_in_one_transaction()
        dearer = compare(before, after, options.waiting)
        for title, value in pages_of_events(options.repeat):
            print(f"{title:36} {'':11} {value:8.1f} ms")
        waiting_events.clear()
    return 1 if dearer else 0


def compare(before: dict[str, float], after: dict[str, float], waiting: int) -> int:
    """Print the times with their ratios. Returns how many ratios are above `MOST`."""
    print(f"{'':36} without, with {waiting:,} waiting events, ratio")
    dearer = 0
    for title, value in before.items():
        ratio = after[title] / value
        above = ratio > MOST and after[title] - value > NOISE_MS
        dearer += above
        print(f"{title:36} {value:8.1f} ms {after[title]:8.1f} ms {ratio:5.2f}{f' above {MOST}' if above else ''}")
    return dearer


def make_in_one_transaction() -> None:
    """Make `CALLS` events in one transaction, three times."""
    from django.db import transaction

    from scheduling.api import schedule_at

    for _ in range(3):
        begin = time.perf_counter()
        with transaction.atomic():
            for number in range(CALLS):
                schedule_at("bench.topic", LATER, payload={"number": number}, metadata={"customer": number})
        print(f"schedule_at: {CALLS / (time.perf_counter() - begin):,.0f} a second in one transaction", flush=True)


def fill_schedules() -> None:
    """Make schedules with some runs that are over, so that the pages have something to show."""
    from django.utils import timezone as clock

    from scheduling.models import Scheduler, SchedulerExecution, Worker

    worker, now = Worker.objects.get(name="tests.noop"), clock.now()
    for number in range(SCHEDULES - Scheduler.objects.count()):
        Scheduler.objects.create(worker=worker, schedule="0 3 1 1 *", description=f"season {number}")
    ids = list(Scheduler.objects.values_list("pk", flat=True))
    ends = [now - timedelta(seconds=RUNS - number) for number in range(RUNS)]
    SchedulerExecution.objects.bulk_create(
        [
            SchedulerExecution(
                scheduler_id=ids[number % len(ids)], execution_key=f"season-{number}", scheduled_at=at, executed_at=at,
                published_at=at, started_at=at, finished_at=at, trigger="cron", type="worker", target_id=worker.pk,
                target_name=worker.name, container_id="producer-1", consumer="consumer-1", attempt=1, state="succeeded",
            )
            for number, at in enumerate(ends)
        ],
        batch_size=1_000,
    )  # fmt: skip


def measured(repeat: int) -> dict[str, float]:
    """The first quartiles in milliseconds of what processes do and of pages that have nothing to do with events."""
    from django.db import transaction
    from django.utils import timezone as clock

    from scheduling.broker import get_broker
    from scheduling.conf import get_conf
    from scheduling.core.queues import work_queues
    from scheduling.execution.claim import claim_due, next_due
    from scheduling.execution.mending import Mending
    from scheduling.producer.lost_messages import LostMessages
    from scheduling.producer.sweeps import sweep

    broker, lost, mending = get_broker(get_conf().broker_url), LostMessages(), Mending()
    queues = [*work_queues(["main", "standalone", "immediate"])]

    def take() -> None:
        with transaction.atomic():
            broker.take(queues, 4, clock.now())

    def claim_some() -> None:
        from scheduling.models import Scheduler

        with transaction.atomic():
            keys = list(Scheduler.objects.order_by("pk").values_list("pk", flat=True)[:DUE])
            Scheduler.objects.filter(pk__in=keys).update(next_run_at=clock.now())
            claim_due(clock.now(), embedded=broker.embedded)
            transaction.set_rollback(True)

    kinds: dict[str, Callable[[], Any]] = {
        "producer: a look at the next": next_due,
        "producer: a claim, nothing is due": lambda: claim_due(clock.now(), embedded=broker.embedded),
        f"producer: a claim of {DUE}": claim_some,
        "producer: the sweeps": lambda: sweep(broker, clock.now(), None, lost),
        "producer: rows set aside": lambda: mending.turn(clock.now()),
    }
    if broker.embedded:
        kinds["consumer: nothing is due"] = take
    else:
        broker.declare([])
    found = {title: _quartile(call, repeat) for title, call in kinds.items()}
    broker.close()
    autocomplete = "/admin/autocomplete/?app_label=scheduling&model_name=schedulerexecution&field_name=scheduler"
    pages = [("list of schedules", f"{A}/scheduler/"), ("list of schedules, searched", f"{A}/scheduler/?q=season"),
             ("dashboard", f"{A}/dashboard/"), ("list of executions", f"{A}/schedulerexecution/"),
             ("failed inbox", f"{A}/failedexecution/"), ("processes", f"{A}/process/"),
             ("list of workers", f"{A}/worker/"),
             ("autocomplete of schedules", f"{autocomplete}&term=season")]  # fmt: skip
    client = _client()
    return found | {title: _of_page(client, address, repeat) for title, address in pages}


def pages_of_events(repeat: int) -> list[tuple[str, float]]:
    """The first quartiles of the pages of events, with all events waiting."""
    client, page = _client(), f"{A}/event/"
    queries = [("list of events", ""), ("of one topic", "?topic=bench.topic7"), ("searched by topic", "?q=bench"),
               ("searched by metadata", "?q=customer%3D7")]  # fmt: skip
    return [(title, _of_page(client, f"{page}{query}", repeat)) for title, query in queries]


def _client() -> Any:
    from django.contrib.auth.models import User
    from django.test import Client

    user, _ = User.objects.get_or_create(username="bench", is_staff=True, is_superuser=True)
    client = Client()
    client.force_login(user)
    return client


def _of_page(client: Any, address: str, repeat: int) -> float:
    return _quartile(lambda: ask(client, address), repeat)


def _quartile(call: Callable[[], Any], repeat: int) -> float:
    call()  # the first call fills caches
    taken = []
    for _ in range(repeat):
        begin = time.perf_counter()
        call()
        taken.append((time.perf_counter() - begin) * 1000)
    return statistics.quantiles(taken, n=4)[0]


if __name__ == "__main__":
    raise SystemExit(main())
