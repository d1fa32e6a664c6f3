"""A run of longer than the broker waits for an acknowledgement: it goes on, and succeeds once."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from scheduling.broker import get_broker
from scheduling.dispatch import run_now
from scheduling.models import Attempt, Scheduler
from tests.contract.node import ROOTS, node
from tests.contract.server import Server
from tests.support import Commands, marks, scheduler, wait_for

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]

LIMIT_MS = 3000
TERMS = (f"{{consumer_timeout, {LIMIT_MS}}}", "{channel_tick_interval, 500}")
"""RabbitMQ's own are 30 minutes, and a look each minute."""

TAKEN_BACK = "delivery acknowledgement on channel"
"""RabbitMQ's words when it closes the channel, as a consumer logs them."""


@dataclass(frozen=True)
class Impatient:
    """A RabbitMQ with the limit turned down; `closes`: it enforces it on classic queues."""

    server: Server
    closes: bool


@pytest.fixture(params=ROOTS)
def impatient(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Impatient]:
    """A server of this test's own."""
    with node(tmp_path / "node", request.param, *TERMS) as url, closing(Server(url)) as server:
        yield Impatient(server, closes=server.version < (4, 3))


def test_a_run_longer_than_the_acknowledgement_limit_succeeds_once(
    commands: Commands, impatient: Impatient, tmp_path: Path
) -> None:
    server = impatient.server
    Scheduler.objects.all().delete()
    # Two consumers: the copy goes to the one whose run it is not, too.
    workers = [commands.start("run_worker", BROKER_URL=server.url()) for _ in range(2)]
    commands.ready(*workers)
    with closing(get_broker(server.url())) as broker:
        run = run_now(scheduler("tests.linger", params={"directory": str(tmp_path), "seconds": 300}), broker)
        wait_for(lambda: marks(tmp_path, run.pk), "it starts")
        long_enough = time.monotonic() + LIMIT_MS / 1000 * 3

        def limit_has_passed() -> bool:
            closed = any(TAKEN_BACK in commands.log(worker) for worker in workers)
            return closed if impatient.closes else time.monotonic() > long_enough

        wait_for(limit_has_passed, "RabbitMQ takes it back")
        # Those that come after it are served, so the copy has been brought and answered by now.
        others = [run_now(scheduler("tests.mark", params={"directory": str(tmp_path)}), broker) for _ in range(6)]
        for other in others:
            wait_for(lambda other=other: len(marks(tmp_path, other.pk)) == 2, "others run meanwhile")
        (tmp_path / "enough").touch()
        wait_for(lambda: not_over(run.pk) == 0, "its end is on record")
    for worker in workers:
        assert commands.stop(worker) == 0
    assert [mark.split()[:2] for mark in marks(tmp_path, run.pk)] == [["start", "1"], ["end", "1"]]
    attempts = Attempt.objects.filter(execution=run)
    assert [(each.number, each.outcome) for each in attempts] == [(1, "succeeded")]
    run.refresh_from_db()
    assert (run.state, run.attempt) == ("succeeded", 1)
    assert server.count(server.name("main")) == 0  # nothing was given back by the consumers that ended
    assert server.count(server.topology.failed) == 0


def not_over(pk: int) -> int:
    """Attempts of an execution that have not ended."""
    return Attempt.objects.filter(execution_id=pk, finished_at=None).count()
