"""Checks the broker's addresses, version and queues, and compares its message counts with the executions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timedelta

from django.db.models import Count

from scheduling.broker import (
    Broker,
    BrokerError,
    BrokerUnavailable,
    Counts,
    QueueUnavailable,
    TopologyMismatch,
    get_broker,
)
from scheduling.conf import get_conf
from scheduling.core.lifecycle import State
from scheduling.core.setting_values import ConfError
from scheduling.handlers.retry_delays import known_delays
from scheduling.models import Attempt, Process, SchedulerExecution
from scheduling.models.time_words import format_span
from scheduling.models.used_queues import used_queues
from scheduling.monitoring.doctor import broker_nodes
from scheduling.monitoring.findings.finding import Finding, counted, fail, ok, warn

CONSUMER_TIMEOUT = timedelta(minutes=30)
"""RabbitMQ's default for `consumer_timeout`. If a consumer does not acknowledge a message in this time, RabbitMQ takes
the message back."""

OLDEST = (3, 10)
"""The first version of RabbitMQ with at-least-once dead-lettering, which the wait queues need."""

LOOKED_AT = 1000
"""How many of the newest attempts the doctor reads to find a long run."""


def examine(now: datetime, *, rows: bool = True) -> Iterator[Finding]:
    """Connect to the broker and declare the queues as a producer does.

    Then compare the broker's message counts with the executions.

    Args:
        rows: whether the database can be read. Without the database, the counts are not compared.
    """
    try:
        broker = get_broker(get_conf().broker_url)
    except ConfError as error:
        yield fail("address", str(error), "Correct CRON_BROKER_URL.")
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
    where = getattr(broker, "addresses", "the broker")  # the addresses as text contain no password
    if hasattr(broker, "nodes") and len(where) > 1:
        yield from broker_nodes.nodes(broker.nodes())
    queues = ok("queues", "Exchange, work queues, wait queues and the failed queue are as declared.")
    try:
        broker.declare(known_delays())
    except TopologyMismatch as error:
        advice = "Running processes continue with the queues as they are. No process can start until this is fixed."
        queues = fail("queues", str(error), advice)
    except QueueUnavailable as error:
        queues = fail("queues", str(error), broker_nodes.ADVICE)
    except BrokerUnavailable as error:
        advice = "Nothing is lost meanwhile: schedules are claimed, and published as soon as it is back."
        yield fail("reachable", str(error), advice)
        return
    yield ok("reachable", f"{where} answers.")
    yield from _version(getattr(broker, "product", ""))
    yield queues
    try:
        yield from _held(broker, now, rows)
    except BrokerError as error:
        yield fail("depths", str(error), "Try again.")
    if rows:
        yield from _long_runs(now)


def _held(broker: Broker, now: datetime, rows: bool) -> Iterator[Finding]:
    counts = broker.counts(used_queues([State.QUEUED]) if rows else ())
    yield from broker_nodes.queues(counts)
    if rows:
        yield from _depths(counts, now)
        yield from broker_nodes.strangers(counts, now)
    yield from broker_nodes.left_behind(broker)


def _version(product: str) -> Iterator[Finding]:
    """Check the product and version that the broker reports, such as `RabbitMQ 3.10.8`."""
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


def _depths(counts: Counts, now: datetime) -> Iterator[Finding]:
    queued = SchedulerExecution.objects.in_state(State.QUEUED).order_by()
    rows = dict(queued.values_list("queue").annotate(Count("pk")))
    alive = list(Process.objects.alive(now, Process.Kind.CONSUMER))
    for queue, ready in sorted(counts.ready.items()):
        waiting = rows.get(queue, 0)
        seen = f"{queue}: {counted(ready, 'message')}, {counted(waiting, 'queued row')}."
        # A consumer may hold one message for each slot. The broker does not count a held message as ready.
        taken = sum(process.concurrency for process in alive if process.serves(queue))
        if waiting > ready + taken:
            yield warn("depths", seen, "Rows whose message is gone are published again by the producers' sweeps.")
        else:
            yield ok("depths", seen)
    if counts.failed is not None:
        inbox = SchedulerExecution.objects.in_state(State.FAILED).count()
        yield ok("failed", f"{counted(counts.failed, 'message')} parked, {counted(inbox, 'row')} in the failed inbox.")


def _long_runs(now: datetime) -> Iterator[Finding]:
    times = Attempt.objects.order_by("-pk").values_list("started_at", "finished_at")
    running = SchedulerExecution.objects.in_state(State.RUNNING).values_list("started_at", flat=True)
    lengths = [(finished or now) - started for started, finished in times[:LOOKED_AT] if started]
    lengths += [now - started for started in running[:LOOKED_AT] if started]
    longest = max(lengths, default=timedelta(0))
    if longest > CONSUMER_TIMEOUT * 0.8:
        took = format_span(longest.total_seconds())
        yield ok(
            "long runs",
            f"A recent run took {took}. RabbitMQ takes back what is not answered within its consumer_timeout "
            "(30 min unless configured); the run goes on under its lease and is recorded once.",
        )
