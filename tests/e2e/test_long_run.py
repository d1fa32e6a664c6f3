"""A run lasts longer than the time for which RabbitMQ waits for an acknowledgement. The run still succeeds, once."""

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
"""RabbitMQ settings: the limit for an acknowledgement and the time between two checks of this limit, in milliseconds.

RabbitMQ's defaults are 30 minutes and one minute.
"""

TAKEN_BACK = "delivery acknowledgement on channel"
"""Words that stand in a consumer's log after RabbitMQ has closed the channel because of this limit."""


@dataclass(frozen=True)
class Impatient:
    """A RabbitMQ server that waits only a short time for an acknowledgement.

    `closes` says whether the server closes the channel of a consumer that acknowledges too late. The consumers of this
    test read classic queues. Some versions of RabbitMQ do not apply the limit to classic queues.
    """

    server: Server
    closes: bool


@pytest.fixture(params=ROOTS)
def impatient(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Impatient]:
    """Provide a server for this test."""
    with node(tmp_path / "node", request.param, *TERMS) as url, closing(Server(url)) as server:
        yield Impatient(server, closes=server.version < (4, 3))


def test_a_run_longer_than_the_acknowledgement_limit_succeeds_once(
    commands: Commands, impatient: Impatient, tmp_path: Path
) -> None:
    server = impatient.server
    # After the limit, RabbitMQ delivers the message again. Of the two consumers, the idle consumer may get this copy.
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
            closed = any(TAKEN_BACK in commands.log(worker) for worker in workers)
            return closed if impatient.closes else time.monotonic() > long_enough

        wait_for(limit_has_passed, "RabbitMQ takes it back")
        # The copy is in the queue before these messages. When these messages are done, the copy was acknowledged too.
        others = [
            run_now(SchedulerFactory(rare=True, handler="tests.mark", params={"directory": str(tmp_path)}), broker)
            for _ in range(6)
        ]
        for other in others:
            wait_for(lambda other=other: len(marks(tmp_path, other.pk)) == 2, "others run meanwhile")
        (tmp_path / "enough").touch()
        wait_for(lambda: not_over(run.pk) == 0, "its end is on record")
    for worker in workers:
        assert commands.stop(worker) == 0
    assert [mark.split()[:2] for mark in marks(tmp_path, run.pk)] == [["start", "1"], ["end", "1"]]
    attempts = Attempt.objects.filter(execution=run)
    assert [(attempt.number, attempt.outcome) for attempt in attempts] == [(1, "succeeded")]
    run.refresh_from_db()
    assert (run.state, run.attempt) == ("succeeded", 1)
    assert server.count(server.name("main")) == 0  # no consumer returned a message to the queue when the consumer ended
    assert server.count(server.topology.failed) == 0


def not_over(pk: int) -> int:
    """Return the number of an execution's attempts that have not ended."""
    return Attempt.objects.filter(execution_id=pk, finished_at=None).count()
