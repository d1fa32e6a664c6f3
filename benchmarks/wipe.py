"""Deletes the RabbitMQ queues during a chaos trial (`benchmarks.chaos`), and measures the recovery.

The result is the time from the deletion to the first and to the last start of the executions that waited.
"""

from __future__ import annotations

from datetime import datetime


def wipe() -> int:
    """Delete all queues of this application in RabbitMQ. Returns how many ready messages the queues held."""
    import pika

    from scheduling.broker.rabbitmq.addresses import Addresses
    from scheduling.broker.rabbitmq.ladder import LADDER
    from scheduling.broker.rabbitmq.topology import WORK, Topology
    from scheduling.conf import get_conf

    conf = get_conf()
    address = Addresses.read(conf.broker_url).all[0]
    topology = Topology(address.prefix, queue_type=conf.queue_type)
    rungs = [rung for queue in WORK for rung in topology.rungs(queue, LADDER)]
    with pika.BlockingConnection(address.parameters("wipe", 10.0)) as connection:
        channel = connection.channel()
        return sum(
            int(channel.queue_delete(queue.name).method.message_count or 0)
            for queue in (*topology.base(), topology.beat, *rungs)
        )


def tell(wiped_at: datetime) -> None:
    """Print how many seconds after the wipe the first and the last execution started.

    Only executions that were claimed before the wipe count.
    """
    from scheduling.models import Attempt

    started = (
        Attempt.objects.filter(started_at__gt=wiped_at, execution__executed_at__lte=wiped_at)
        .order_by("started_at")
        .values_list("started_at", flat=True)
    )
    if not (instants := list(started)):
        print("after the wipe: nothing waited")
        return
    first, last = ((instant - wiped_at).total_seconds() for instant in (instants[0], instants[-1]))
    print(
        f"after the wipe: {len(instants)} starts of what waited, the first {first:.1f} s, the last {last:.1f} s later"
    )
