"""Measures runs that code asks for (`scheduling.api`) beside the same rows saved by the ORM.

    python -m benchmarks.from_code --database postgres://... --broker amqp://guest:guest@127.0.0.1:5672/

Single calls are measured in alternation, each as the median of many, so a slow moment of the machine meets all of them.
Beside each median stand its quartiles, and the processor time that this process used.

With RabbitMQ, the least that a confirmed message can cost is measured, too: pika's own publish, which waits for the
confirm. Where the package django-ox is installed (it needs Python 3.12), its `enqueue` is measured in the same run.
The last lines say what `run.checkpoint` costs a handler that does 1,000 items a second.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
import uuid
from collections.abc import Callable
from contextlib import ExitStack
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.history import clear
from benchmarks.site import enter
from benchmarks.wipe import wipe

MANY = 20_000
ITEM_SECONDS = 0.001
HAS_OX = find_spec("django_ox") is not None


def noop() -> None:
    """The task that django-ox gets."""


def main() -> int:
    """Measure and print each line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.from_code")
    parser.add_argument("--database", default="", help="default: SQLite in a folder of its own")
    parser.add_argument("--broker", default="database://")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--calls", type=int, default=1_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-") as name, ExitStack() as stack:
        apps = "tests.apps.sample,django_ox" if HAS_OX else "tests.apps.sample"
        enter(Path(name), options.database, options.broker, EXTRA_APPS=apps)
        embedded = options.broker.startswith("database:")
        if not HAS_OX:
            print("django-ox is not installed here, so it is not measured.")
        for _ in range(options.repeat):
            if not embedded:
                wipe()
            one_by_one(_kinds(options.broker, stack), options.calls)
        for _ in range(options.repeat):
            clear()
            many()
        checkpoints(max(options.calls, 3_000))
        clear()
        if not embedded:
            wipe()
    return 0


def _kinds(broker: str, stack: ExitStack) -> dict[str, Callable[[], object]]:
    """What is called in alternation, by its name. The first one is the measure of the others."""
    from django.db import transaction

    from scheduling.api import run
    from scheduling.models import SchedulerExecution

    row = SchedulerExecution.objects.get(pk=run("tests.noop", {}).id)

    def saved() -> None:
        row.pk, row.execution_key = None, f"code-{uuid.uuid4()}"
        with transaction.atomic():
            row.save(force_insert=True)

    kinds: dict[str, Callable[[], object]] = {
        "the same row, saved in a transaction of its own": saved,
        "run()": lambda: run("tests.noop", {}),
    }
    if not broker.startswith("database:"):
        kinds["run(confirm=False)"] = lambda: run("tests.noop", {}, confirm=False)
        kinds["pika's basic_publish, confirmed"] = _bare_publish(stack)
    if HAS_OX:
        kinds["enqueue() of django-ox"] = _ox(stack)
    return kinds


def _bare_publish(stack: ExitStack) -> Callable[[], object]:
    """Publishes a persistent message with pika's blocking connection, to a durable queue of its own."""
    import pika

    from scheduling.broker.rabbitmq.addresses import Addresses
    from scheduling.conf import get_conf

    address = Addresses.read(get_conf().broker_url).all[0]
    channel = stack.enter_context(pika.BlockingConnection(address.parameters("floor", 10.0))).channel()
    name = f"floor-{uuid.uuid4()}"
    channel.queue_declare(name, durable=True, exclusive=True)
    channel.confirm_delivery()
    properties = pika.BasicProperties(delivery_mode=2)
    return lambda: channel.basic_publish("", name, b"x" * 300, properties, mandatory=True)


def _ox(stack: ExitStack) -> Callable[[], object]:
    """Enqueues a task without arguments with django-ox."""
    from django.test.utils import override_settings

    tasks = import_module("django.tasks" if find_spec("django.tasks") else "django_tasks")
    stack.enter_context(override_settings(TASKS={"default": {"BACKEND": "django_ox.backend.OxBackend"}}))
    task: Any = tasks.task(noop)
    return lambda: task.enqueue()


def one_by_one(kinds: dict[str, Callable[[], object]], calls: int) -> None:
    """Print the medians of one call, in milliseconds, and their ratios to the first kind."""
    taken: dict[str, list[float]] = {name: [] for name in kinds}
    used = dict.fromkeys(kinds, 0.0)
    for _ in range(calls):
        for name, call in kinds.items():
            begin, used_before = time.perf_counter(), time.process_time()
            call()
            taken[name].append(time.perf_counter() - begin)
            used[name] += time.process_time() - used_before
    floor = 0.0
    print(f"the load of the machine: {os.getloadavg()[0]:.1f}")
    for name, seconds in taken.items():
        low, median, high = statistics.quantiles(seconds, n=4)
        floor = floor or median
        print(
            f"{name:50} {median * 1000:6.2f} ms [{low * 1000:.2f}-{high * 1000:.2f}], {median / floor:.2f} times the "
            f"row, {1 / median:,.0f}/s, processor {used[name] / calls * 1000:.2f} ms",
            flush=True,
        )
    clear()


def many() -> None:
    """Print how many runs a second one call of `run_many` makes."""
    from scheduling.api import Asked, run_many

    asked = [Asked("tests.noop") for _ in range(MANY)]
    begin, used = time.perf_counter(), time.process_time()
    made = run_many(asked)
    taken, used = time.perf_counter() - begin, time.process_time() - used
    assert len({each.id for each in made}) == MANY
    print(f"{'run_many of 20,000':50} {MANY / taken:,.0f} runs/s, processor {used:.2f} s", flush=True)


def checkpoints(calls: int) -> None:
    """Print how much longer a handler takes that does 1,000 items a second and stores a checkpoint after each."""
    from scheduling.api import run
    from scheduling.execution.steps import DatabaseLedger
    from scheduling.handlers.steps import Steps
    from scheduling.models import SchedulerExecution

    rows = SchedulerExecution.objects.filter(pk=run("tests.noop", {}).id)
    rows.update(state="running", attempt=1)
    steps = Steps(DatabaseLedger(rows.values_list("pk", flat=True)[0], 1))
    kinds: dict[str, Callable[[int], object]] = {
        "without a checkpoint": lambda _number: None,
        "run.checkpoint": lambda number: steps.checkpoint({"item": number}),
        "run.checkpoint(every=1.0)": lambda number: steps.checkpoint({"item": number}, every=1.0),
    }
    taken = {name: _items(calls, call) for name, call in kinds.items()}
    rows.delete()
    least = taken["without a checkpoint"]
    for name, seconds in taken.items():
        more = f"{(seconds - least) / calls * 1000:6.3f} ms an item, {seconds / least - 1:+.1%} of its time"
        print(f"{f'items of 1 ms, {name}':50} {more}", flush=True)


def _items(calls: int, call: Callable[[int], object]) -> float:
    """How long a handler takes for so many items of `ITEM_SECONDS`, in seconds."""
    begin = time.perf_counter()
    for number in range(calls):
        until = time.perf_counter() + ITEM_SECONDS
        while time.perf_counter() < until:
            pass
        call(number)
    return time.perf_counter() - begin


if __name__ == "__main__":
    raise SystemExit(main())
