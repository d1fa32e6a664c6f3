"""If a message is not acknowledged in time, RabbitMQ delivers it again. The execution must not start twice.

When the time is over, some versions of RabbitMQ close the channel, and other versions cancel the consumer.
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

pytestmark = [pytest.mark.processes, pytest.mark.any_database, pytest.mark.django_db(transaction=True)]


@pytest.fixture(params=ROOTS)
def server_with_limit(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    """Provide a server that waits for an acknowledgement for only two seconds. The default is thirty minutes."""
    terms = ("{consumer_timeout, 2000}", "{channel_tick_interval, 500}")
    with node(tmp_path / "node", request.param, *terms) as url, closing(Server(url)) as server:
        yield server


def test_a_message_that_is_delivered_again_is_not_started_twice(
    server_with_limit: Server, caplog: pytest.LogCaptureFixture
) -> None:
    """After the limit, RabbitMQ 3.10 and 4.0 close the channel, and RabbitMQ 4.3 cancels the consumer.

    RabbitMQ 4.3 applies this limit to quorum queues, but not to classic queues.
    """
    with closing(RabbitBroker(server_with_limit.url(), ladder=RUNGS)) as broker:
        desk = Desk(broker, "immediate")
        first, second = ManualExecutionFactory.bulk(2, queue="immediate", state="claimed")
        publish([first], broker)
        delivery = desk.start()
        subscription = broker._running().subscription
        wait_for(lambda: sum(queue.brought for queue in subscription.queues) == 2, "the message is delivered again")
        desk.end(delivery)
        publish([second], broker)
        desk.run()
        assert desk.starts_nothing()
    assert "holds messages and brings none" not in caplog.text  # the module `watchdog` did not drop the connection
    for execution in (first, second):
        execution.refresh_from_db()
        assert (execution.state, execution.attempt) == ("succeeded", 1)
    assert Attempt.objects.count() == 2
    assert server_with_limit.count(server_with_limit.name("immediate")) == 0
    assert server_with_limit.count(server_with_limit.topology.failed) == 0
