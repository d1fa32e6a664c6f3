"""The broker: address, reachable, queues as declared, and what they hold against the rows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from itertools import islice

from django.db.models import Count

from scheduling.broker import Broker, BrokerError, BrokerUnavailable, TopologyMismatch, get_broker
from scheduling.conf import ConfError, get_conf
from scheduling.core.lifecycle import State
from scheduling.delays import known_delays
from scheduling.doctor.finding import Finding, counted, fail, ok, span, warn
from scheduling.doctor.processes import alive
from scheduling.models import Attempt, SchedulerExecution

CONSUMER_TIMEOUT = timedelta(minutes=30)
"""RabbitMQ's default: a delivery that is not answered for so long is taken back."""

OLDEST = (3, 10)
"""The first RabbitMQ that confirms dead-lettering to itself."""

LOOKED_AT = 1000
"""Attempts, the newest, whose length is looked at."""


def examine(now: datetime, *, rows: bool = True) -> Iterator[Finding]:
    """Connect as a producer does, declare what it would declare, and count.

    Args:
        rows: whether the database can be read, to compare with.
    """
    try:
        broker = get_broker(get_conf().broker_url)
    except ConfError as error:
        yield fail("address", str(error), "Correct BROKER_URL.")
        return
    if broker.embedded:
        yield ok("transport", "The database is the queue; there is no broker to reach.")
        return
    try:
        yield from _reached(broker, now, rows)
    finally:
        with suppress(BrokerError):
            broker.close()


def _reached(broker: Broker, now: datetime, rows: bool) -> Iterator[Finding]:
    where = getattr(broker, "address", "the broker")  # its text has no password
    try:
        broker.declare(known_delays())
    except TopologyMismatch as error:
        yield ok("reachable", f"{where} answers.")
        yield fail(
            "queues",
            str(error),
            "What runs goes on over the queues as they are; no process starts before this is mended.",
        )
        return
    except BrokerUnavailable as error:
        yield fail(
            "reachable",
            str(error),
            "Nothing is lost meanwhile: schedules are claimed, and published as soon as it is back.",
        )
        return
    yield ok("reachable", f"{where} answers.")
    yield from _version(getattr(broker, "product", ""))
    yield ok("queues", "Exchange, work queues, wait queues and the failed queue are as declared.")
    if rows:
        try:
            yield from _depths(broker, now)
        except BrokerError as error:
            yield fail("depths", str(error), "Try again.")
        yield from _long_runs(now)


def _version(product: str) -> Iterator[Finding]:
    """Of a broker that says what it is: `RabbitMQ 3.10.8`."""
    found = re.match(r"RabbitMQ (\d+)\.(\d+)", product)
    if found is None:
        if product:
            yield warn("version", f"{product}.", "Only RabbitMQ, 3.10 and newer, is tested: watch it, or use that.")
        return
    if (int(found[1]), int(found[2])) < OLDEST:
        advice = "Use RabbitMQ 3.10 or newer: before, a message can be lost on its way out of a wait queue."
        yield fail("version", f"{product} is too old.", advice)
    else:
        yield ok("version", f"{product}.")


def _depths(broker: Broker, now: datetime) -> Iterator[Finding]:
    counts = broker.counts()
    rows = dict(
        SchedulerExecution.objects.in_state(State.QUEUED).values_list("queue").annotate(Count("pk")).order_by("queue")
    )
    taken: dict[str, int] = {}
    for process in alive(now):
        queue = str(process.info.get("queue", "")) if isinstance(process.info, dict) else ""
        taken[queue] = taken.get(queue, 0) + process.concurrency
    for queue, ready in sorted(counts.ready.items()):
        waiting = rows.get(queue, 0)
        seen = f"{queue}: {counted(ready, 'message')}, {counted(waiting, 'queued row')}."
        # A consumer holds as many messages as it has slots; they are in no queue.
        if waiting > ready + taken.get(queue, 0):
            yield warn("depths", seen, "Rows whose message is gone are published again by the producers' sweeps.")
        else:
            yield ok("depths", seen)
    if counts.failed is not None:
        inbox = SchedulerExecution.objects.in_state(State.FAILED).count()
        yield ok("failed", f"{counted(counts.failed, 'message')} parked, {counted(inbox, 'row')} in the failed inbox.")


def _long_runs(now: datetime) -> Iterator[Finding]:
    times = Attempt.objects.order_by("-pk").values_list("started_at", "finished_at")
    longest = max(
        ((finished or now) - started for started, finished in islice(times[:LOOKED_AT], LOOKED_AT) if started),
        default=timedelta(0),
    )
    for started in SchedulerExecution.objects.in_state(State.RUNNING).values_list("started_at", flat=True)[:LOOKED_AT]:
        longest = max(longest, now - started if started else longest)
    if longest > CONSUMER_TIMEOUT * 0.8:
        yield ok(
            "long runs",
            f"A recent run took {span(longest.total_seconds())}. RabbitMQ takes back what is not answered within its "
            "consumer_timeout (30 min unless configured); the run goes on under its lease and is recorded once.",
        )
