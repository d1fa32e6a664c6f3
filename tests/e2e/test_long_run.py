"""A run succeeds and is not started again, even if it lasts longer than RabbitMQ waits for an acknowledgement."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from scheduling.broker import get_broker
from scheduling.execution.run_now import run_now
from scheduling.models import Attempt
from tests.contract.node import ROOTS, node
from tests.contract.server import Server
from tests.factories import SchedulerFactory
from tests.support import Commands, marks, wait_for

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]

LIMIT_MS = 3000
TERMS = (f"{{consumer_timeout, {LIMIT_MS}}}", "{channel_tick_interval, 500}")
"""RabbitMQ's settings: how long it waits for an acknowledgement, and how often it checks this, in milliseconds.

The defaults are 30 minutes and one minute.
"""

CHANNEL_CLOSED = "delivery acknowledgement on channel"
"""Words that a consumer logs when RabbitMQ has closed the channel because of a missing acknowledgement."""


@dataclass(frozen=True)
class ServerWithLimit:
    """A RabbitMQ server that waits only a short time for an acknowledgement.

    `closes` says whether the server closes the channel of a consumer that acknowledges too late. The main
    queue is a classic queue, and RabbitMQ 4.3 and later have no limit for classic queues.
    """

    server: Server
    closes: bool


@pytest.fixture(params=ROOTS)
def limited(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ServerWithLimit]:
    """Provide a RabbitMQ server that only this test uses."""
    with node(tmp_path / "node", request.param, *TERMS) as url, closing(Server(url)) as server:
        yield ServerWithLimit(server, closes=server.version < (4, 3))


def test_a_run_longer_than_the_acknowledgement_limit_succeeds_once(
    commands: Commands, limited: ServerWithLimit, tmp_path: Path
) -> None:
    server = limited.server
    # After the limit, RabbitMQ delivers the message again. The second consumer is idle and may get this copy.
    workers = [commands.start("run_worker", BROKER_URL=server.url()) for _ in range(2)]
    commands.ready(*workers)
    with closing(get_broker(server.url())) as broker:
        run = run_now(
            SchedulerFactory(rare=True, handler="tests.linger", params={"directory": str(tmp_path), "seconds": 300}),
            broker,
        )
        wait_for(lambda: marks(tmp_path, run.pk), "it starts")
        long_enough = time.monotonic() + LIMIT_MS / 1000 * 3

        def limit_has_passed() -> bool:
            closed = any(CHANNEL_CLOSED in commands.log(worker) for worker in workers)
            return closed if limited.closes else time.monotonic() > long_enough

        wait_for(limit_has_passed, "the limit has passed")
        # The copy is in front of these messages in the queue. So when these runs end, the copy has been delivered.
        others = [
            run_now(SchedulerFactory(rare=True, handler="tests.mark", params={"directory": str(tmp_path)}), broker)
            for _ in range(6)
        ]
        for other in others:
            wait_for(lambda other=other: len(marks(tmp_path, other.pk)) == 2, "others run meanwhile")
        (tmp_path / "enough").touch()
        wait_for(lambda: Attempt.objects.filter(execution=run).exists(), "its end is recorded")
    for worker in workers:
        assert commands.stop(worker) == 0
    assert [mark.split()[:2] for mark in marks(tmp_path, run.pk)] == [["start", "1"], ["end", "1"]]
    attempts = Attempt.objects.filter(execution=run)
    assert [(attempt.number, attempt.outcome) for attempt in attempts] == [(1, "succeeded")]
    run.refresh_from_db()
    assert (run.state, run.attempt) == ("succeeded", 1)
    assert server.count(server.name("main")) == 0  # the consumers returned no message when they stopped
    assert server.count(server.topology.failed) == 0
