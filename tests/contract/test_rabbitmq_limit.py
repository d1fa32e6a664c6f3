"""RabbitMQ takes back a message that is not acknowledged in time. No such message runs twice.

Each version of RabbitMQ takes messages back in a different way.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from scheduling.broker.rabbitmq import RabbitBroker
from scheduling.execution.publish import publish
from scheduling.models import Attempt
from tests.contract.conftest import RUNGS
from tests.contract.desk import Desk
from tests.contract.node import ROOTS, node
from tests.contract.server import Server
from tests.factories import ManualExecutionFactory
from tests.support import wait_for

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]


@pytest.fixture(params=ROOTS)
def impatient(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    """Provide a server for this test that waits two seconds for an acknowledgement instead of thirty minutes."""
    terms = ("{consumer_timeout, 2000}", "{channel_tick_interval, 500}")
    with node(tmp_path / "node", request.param, *terms) as url, closing(Server(url)) as server:
        yield server


def test_what_is_taken_back_from_a_quorum_queue_is_not_started_twice(
    impatient: Server, caplog: pytest.LogCaptureFixture
) -> None:
    """After the limit, RabbitMQ 3.10 and 4.0 close the channel, and RabbitMQ 4.3 cancels the consumer.

    RabbitMQ 4.3 has this limit on quorum queues, but not on classic queues.
    """
    with closing(RabbitBroker(impatient.url(), ladder=RUNGS)) as broker:
        desk = Desk(broker, "immediate")
        first, second = ManualExecutionFactory.bulk(2, queue="immediate", state="claimed")
        publish([first], broker)
        delivery = desk.start()
        subscription = broker._running().subscription
        wait_for(lambda: subscription.brought == 2, "it is taken back and brought again")
        desk.end(delivery)
        publish([second], broker)
        desk.run()
        assert desk.starts_nothing()
    assert "holds messages and brings none" not in caplog.text  # the watchdog did not act
    for execution in (first, second):
        execution.refresh_from_db()
        assert (execution.state, execution.attempt) == ("succeeded", 1)
    assert Attempt.objects.count() == 2
    assert impatient.count(impatient.name("immediate")) == 0
    assert impatient.count(impatient.topology.failed) == 0
