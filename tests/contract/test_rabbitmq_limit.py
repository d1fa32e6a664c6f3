"""RabbitMQ takes back what is not acknowledged in time, each version in a way of its own: none of it runs twice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from scheduling.broker.rabbitmq import RabbitBroker
from scheduling.dispatch import publish
from scheduling.models import Attempt
from tests.contract.conftest import RUNGS
from tests.contract.desk import Desk
from tests.contract.node import ROOTS, node
from tests.contract.server import Server
from tests.support import queued, scheduler, wait_for

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]


@pytest.fixture(params=ROOTS)
def impatient(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    """A server of this test's own that waits for two seconds, instead of thirty minutes."""
    terms = ("{consumer_timeout, 2000}", "{channel_tick_interval, 500}")
    with node(tmp_path / "node", request.param, *terms) as url, closing(Server(url)) as server:
        yield server


def test_what_is_taken_back_from_a_quorum_queue_is_not_started_twice(
    impatient: Server, caplog: pytest.LogCaptureFixture
) -> None:
    """3.10 and 4.0 close the channel, 4.3 ends the consumer. On classic queues 4.3 has no limit at all."""
    with closing(RabbitBroker(impatient.url(), ladder=RUNGS)) as broker:
        desk = Desk(broker, "immediate")
        first, second = queued(scheduler("tests.noop"), 2, queue="immediate", state="claimed")
        publish([first], broker)
        delivery = desk.start()
        subscription = broker._running().subscription
        wait_for(lambda: subscription.brought == 2, "it is taken back and brought again")
        desk.end(delivery)
        publish([second], broker)
        desk.run()
        assert desk.starts_nothing()
    assert "holds messages and brings none" not in caplog.text  # the watchdog had not to mend it
    for each in (first, second):
        each.refresh_from_db()
        assert (each.state, each.attempt) == ("succeeded", 1)
    assert Attempt.objects.count() == 2
    assert impatient.count(impatient.name("immediate")) == 0
    assert impatient.count(impatient.topology.failed) == 0
