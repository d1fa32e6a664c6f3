"""Measures events (`scheduling.api.schedule_at`): how fast they are made, and what waiting ones cost others.

    python -m benchmarks.events --database postgres://... --waiting 1000000

Each tick and page is measured without waiting events and then with them, in one run, as the median of many.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from benchmarks.history import clear
from benchmarks.pages import A, ask
from benchmarks.site import enter

CALLS = 2_000
BATCH = 5_000
TOPICS = 20
SCHEDULES = 2_000
LATER = datetime(2096, 1, 1, tzinfo=UTC)


def main() -> int:
    """Measure and print each line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.events")
    parser.add_argument("--database", default="", help="default: SQLite in a folder of its own")
    parser.add_argument("--broker", default="database://")
    parser.add_argument("--waiting", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=11)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="events-") as name:
        enter(Path(name), options.database, options.broker, ALLOWED_HOSTS="testserver")
        for _ in range(3):
            clear_events()
            make_in_one_transaction()
        clear_events()
        fill_schedules()
        before = measured(options.repeat)
        fill(options.waiting)
        after = measured(options.repeat)
        print(f"{'':36} without, with {options.waiting:,} waiting events, ratio")
        for title, value in before.items():
            print(f"{title:36} {value:8.1f} ms {after[title]:8.1f} ms {after[title] / value:5.2f}")
        for title, value in pages_of_events(options.repeat):
            print(f"{title:36} {value:8.1f} ms")
        clear_events()
    return 0


def clear_events() -> None:
    """Delete all events with their executions."""
    from scheduling.models import Event

    Event.objects.all()._raw_delete("default")
    clear()


def make_in_one_transaction() -> None:
    """Make `CALLS` events in one transaction."""
    from django.db import transaction

    from scheduling.api import schedule_at

    begin = time.perf_counter()
    with transaction.atomic():
        for number in range(CALLS):
            schedule_at("bench.topic", LATER, payload={"number": number}, metadata={"customer": number})
    print(f"schedule_at: {CALLS / (time.perf_counter() - begin):,.0f} a second in one transaction", flush=True)


def fill_schedules() -> None:
    """Make schedules, so that the list and the autocomplete have something to show."""
    from scheduling.models import Scheduler, Worker

    worker = Worker.objects.get(name="tests.noop")
    for number in range(SCHEDULES - Scheduler.objects.count()):
        Scheduler.objects.create(worker=worker, schedule="0 3 1 1 *", description=f"season {number}")


def fill(waiting: int) -> None:
    """Insert waiting events."""
    from scheduling.api import schedule_at
    from scheduling.models import Event, SchedulerExecution

    first = SchedulerExecution.objects.values().get(pk=schedule_at("bench.topic0", LATER).id)
    del first["id"]
    begin = time.monotonic()
    for start in range(1, waiting, BATCH):
        rows = [
            SchedulerExecution(
                **first | {"execution_key": f"code-bench-{number}", "wake_at": LATER + timedelta(seconds=number)}
            )
            for number in range(start, min(start + BATCH, waiting))
        ]
        top = SchedulerExecution.objects.order_by("-pk").values_list("pk", flat=True)[0]
        SchedulerExecution.objects.bulk_create(rows)
        keys = SchedulerExecution.objects.filter(pk__gt=top).values_list("pk", flat=True)
        Event.objects.bulk_create(
            Event(execution_id=pk, topic=f"bench.topic{pk % TOPICS}", metadata={"customer": pk}) for pk in keys
        )
    print(f"{waiting:,} events made in {time.monotonic() - begin:.0f} s", flush=True)


def measured(repeat: int) -> dict[str, float]:
    """The medians in milliseconds of a tick and of pages that have nothing to do with events."""
    from django.utils import timezone as clock

    from scheduling.broker import get_broker
    from scheduling.conf import get_conf
    from scheduling.execution.claim import claim_due
    from scheduling.producer.sweeps import sweep

    broker = get_broker(get_conf().broker_url)
    kinds: dict[str, Callable[[], Any]] = {
        "a claim": lambda: claim_due(clock.now(), embedded=broker.embedded),
        "a sweep": lambda: sweep(broker, clock.now()),
    }
    found = {title: _median(call, repeat) for title, call in kinds.items()}
    autocomplete = "/admin/autocomplete/?app_label=scheduling&model_name=scheduler&field_name=worker&term=noop"
    pages = [("the list of schedules", f"{A}/scheduler/"), ("the dashboard", f"{A}/dashboard/"),
             ("the list of executions", f"{A}/schedulerexecution/"), ("autocomplete", autocomplete)]  # fmt: skip
    client = _client()
    return found | {title: statistics.median(ask(client, address) for _ in range(repeat)) for title, address in pages}


def pages_of_events(repeat: int) -> list[tuple[str, float]]:
    """The medians of the pages of events, with all events waiting."""
    client, page = _client(), f"{A}/event/"
    queries = [("the list of events", ""), ("of one topic", "?topic=bench.topic7"), ("searched by topic", "?q=bench"),
               ("searched by metadata", "?q=customer%3D7")]  # fmt: skip
    return [
        (title, statistics.median(ask(client, f"{page}{query}") for _ in range(repeat))) for title, query in queries
    ]


def _client() -> Any:
    from django.contrib.auth.models import User
    from django.test import Client

    user, _ = User.objects.get_or_create(username="bench", is_staff=True, is_superuser=True)
    client = Client()
    client.force_login(user)
    return client


def _median(call: Callable[[], Any], repeat: int) -> float:
    taken = []
    for _ in range(repeat):
        begin = time.perf_counter()
        call()
        taken.append((time.perf_counter() - begin) * 1000)
    return statistics.median(taken)


if __name__ == "__main__":
    raise SystemExit(main())
