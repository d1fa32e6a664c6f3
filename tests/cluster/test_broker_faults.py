"""Faults of a RabbitMQ cluster under a steady load: no run is lost, none is doubled, and the work goes on by itself.

`make test-cluster` says what is needed. TEST_CLUSTER_SECONDS is the length of a fault (10 by default, 60 for the full
volume) and TEST_CLUSTER_RATE the number of runs a second (20 by default). The gaps are printed (`pytest -s`).
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cluster.fleet import Fleet
from tests.cluster.nodes import Cluster, Node, cluster
from tests.contract.node import ROOTS_4
from tests.support import Commands, wait_for

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.processes,
    pytest.mark.rabbitmq,
    pytest.mark.any_database,
    # A connection that the other end closes during the login leaves its socket to the garbage collector, inside pika.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

SECONDS = float(os.environ.get("TEST_CLUSTER_SECONDS", "10"))
RATE = float(os.environ.get("TEST_CLUSTER_RATE", "20"))

LIMIT = 60.0
"""The longest gap, in seconds, on a loaded machine. What is usual is printed and stands in docs/brokers.md."""


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Cluster]:
    """Provide three nodes of RabbitMQ 4. Skip the test if none was unpacked."""
    if not ROOTS_4:
        pytest.skip("TEST_RABBITMQ_4_ROOTS names no RabbitMQ 4 (tests/contract/rabbitmq-node fetch)")
    with cluster(tmp_path / "nodes", ROOTS_4[0]) as started:
        yield started


@pytest.fixture
def fleet(nodes: Cluster, commands: Commands, tmp_path: Path) -> Iterator[Fleet]:
    """Provide producers and consumers on quorum queues, which know all three addresses."""
    started = Fleet(commands, tmp_path / "marks", nodes.url(), "quorum", RATE)
    yield started
    started.close()


def say(text: str, fleet: Fleet) -> None:
    sys.stdout.write(f"{text}, {fleet.count()}, WARN lines of each process {fleet.warnings()}\n")


def doctor(fleet: Fleet) -> str:
    begun = time.monotonic()
    _, text = fleet.commands.run("doctor", "--only", "broker", "--format", "json")
    assert time.monotonic() - begun < 60
    found = json.loads(text[text.index("{") :])["findings"]
    return " ".join(f"{finding['seen']} {finding['advice']}" for finding in found if finding["level"] != "ok")


def killed(nodes: Cluster, leader: Node, fleet: Fleet) -> None:
    leader.kill()
    assert f"127.0.0.1:{leader.port}" in doctor(fleet)
    time.sleep(SECONDS)
    leader.start()


def suspended(nodes: Cluster, leader: Node, fleet: Fleet) -> None:
    leader.suspend()
    assert f"127.0.0.1:{leader.port}" in doctor(fleet)
    time.sleep(SECONDS)
    leader.resume()


def killed_for_good(nodes: Cluster, leader: Node, fleet: Fleet) -> None:
    leader.kill()
    time.sleep(SECONDS)
    other = nodes.others(leader)[0]
    other.ctl("forget_cluster_node", leader.name)
    nodes.nodes.remove(leader)
    time.sleep(SECONDS)


def rolled(nodes: Cluster, leader: Node, fleet: Fleet) -> None:
    for node in nodes.nodes:
        node.stop()
        time.sleep(SECONDS / 3)
        node.start()
        node.ctl("await_online_nodes", str(len(nodes.nodes)))


def cut_off(nodes: Cluster, leader: Node, fleet: Fleet) -> None:
    nodes.cut_off(leader)
    time.sleep(SECONDS)
    nodes.heal(leader)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("fault", [killed, suspended, killed_for_good, rolled, cut_off])
def test_quorum_queues_survive(fault: Callable[[Cluster, Node, Fleet], None], nodes: Cluster, fleet: Fleet) -> None:
    fleet.begin()
    leader = nodes.home("cron_scheduler_quorum")
    begun = time.time()
    fault(nodes, leader, fleet)
    ended = time.time()
    wait_for(lambda: max(fleet.starts().values()) > ended, "runs start after the fault")
    after = next(at for at in sorted(fleet.starts().values()) if at > ended) - ended
    fleet.finish()
    gap = fleet.gap(begun, ended)
    length = ended - begun
    say(f"\n{fault.__name__}: gap {gap:.1f} s in {length:.0f} s, first start {after:.1f} s after", fleet)
    fleet.audit()
    assert gap < LIMIT + (SECONDS if fault is suspended else 0)
    for process in fleet.processes:
        assert fleet.commands.stop(process) == 0, fleet.commands.log(process)


@pytest.mark.django_db(transaction=True)
def test_classic_queues_go_on_after_their_node_is_forgotten(nodes: Cluster, commands: Commands, tmp_path: Path) -> None:
    """The node of all classic queues dies and never returns. What helps stands in the doctor's report."""
    fleet = Fleet(commands, tmp_path / "marks", nodes.url(), "classic", RATE)
    try:
        fleet.begin()
        home = nodes.home("cron_scheduler")
        home.kill()
        said = doctor(fleet)
        assert "forget_cluster_node" in said
        assert "'cron_scheduler'" in said
        assert "CRON_QUEUE_TYPE=quorum" in said
        time.sleep(SECONDS)
        nodes.others(home)[0].ctl("forget_cluster_node", home.name)
        nodes.nodes.remove(home)
        forgotten = time.time()
        wait_for(lambda: max(fleet.starts().values()) > forgotten, "runs start again")
        after = next(at for at in sorted(fleet.starts().values()) if at > forgotten) - forgotten
        fleet.finish()
        say(f"\nclassic, node forgotten: runs {after:.1f} s later", fleet)
        fleet.audit()
    finally:
        fleet.close()
