"""Checks the nodes of a broker cluster: their addresses, their queues, and who else uses the queues."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from scheduling.broker import Broker, BrokerNode, Counts
from scheduling.models import Process
from scheduling.monitoring.findings.finding import Finding, counted, fail, ok, warn

ADVICE = (
    "Nothing is lost: rows wait. Start the node of the queue. If the node never returns, run `rabbitmqctl "
    "forget_cluster_node NODE` on another node: then the queue is declared anew, and its rows are published again. "
    "With CRON_QUEUE_TYPE=quorum, a queue works as long as most of its nodes are there."
)
"""What helps if a queue cannot be used."""

KNOWN_FOR = timedelta(minutes=2)
"""How long after its last heartbeat a consumer may still be counted by the broker."""


def nodes(nodes: list[BrokerNode]) -> Iterator[Finding]:
    """Check that every address of CRON_BROKER_URL is a node of the same cluster."""
    away = [node for node in nodes if node.problem]
    if away:
        seen = f"{len(away)} of {len(nodes)} addresses cannot be used: "
        seen += " ".join(node.problem if node.problem.endswith((".", "?")) else f"{node.problem}." for node in away)
        yield warn("addresses", seen, "The other addresses are used. Start these nodes, or correct CRON_BROKER_URL.")
    clusters: dict[str, list[str]] = {}
    for node in nodes:
        if not node.problem:
            clusters.setdefault(node.cluster, []).append(node.address)
    if len(clusters) > 1:
        said = "; ".join(f"{', '.join(where)} is {name!r}" for name, where in clusters.items())
        advice = "Name the nodes of one cluster only: a consumer of one cluster gets no message of another."
        yield fail("addresses", f"The addresses of CRON_BROKER_URL belong to different clusters: {said}.", advice)
    elif not away:
        yield ok("addresses", f"All {len(nodes)} addresses answer.")


def queues(counts: Counts) -> Iterator[Finding]:
    """Name each work queue that cannot be used."""
    for problem in counts.problems.values():
        yield fail("queue", problem, ADVICE)


def left_behind(broker: Broker) -> Iterator[Finding]:
    """Find messages in the queues of the other CRON_QUEUE_TYPE."""
    found = broker.left_behind() if hasattr(broker, "left_behind") else {}
    for name, ready in found.items():
        yield warn(
            "former type",
            f"{name} holds {counted(ready, 'message')}, and nothing consumes it: it belongs to the other "
            "CRON_QUEUE_TYPE.",
            "Rows that wait are published again by themselves, and failures are in the inbox. For messages of other "
            "programs, run one consumer with the other CRON_QUEUE_TYPE until it is empty. Then delete the queue.",
        )


def strangers(counts: Counts, now: datetime) -> Iterator[Finding]:
    """Find queues with more consumers than this database knows, as with two sites on one vhost."""
    known = list(Process.objects.filter(kind=Process.Kind.CONSUMER, heartbeat_at__gte=now - KNOWN_FOR))
    for queue, consumers in sorted(counts.consumers.items()):
        ours = sum(process.serves(queue) for process in known)
        if consumers > ours:
            yield warn(
                "strangers",
                f"{queue}: the broker has {counted(consumers, 'consumer')}, and this database knows {ours}.",
                "Another site or another program takes messages from this queue. They are not lost, but late. Give "
                "each site a virtual host of its own, or a ?prefix= in CRON_BROKER_URL.",
            )
