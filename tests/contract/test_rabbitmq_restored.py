"""The database is restored from yesterday, and the queues still hold the messages of today.

New rows then get the primary keys of rows that the restore removed, and the old messages name these keys.
"""

from __future__ import annotations

import pytest
from django.utils import timezone as clock

from scheduling.broker.rabbitmq import RabbitBroker
from scheduling.core.lifecycle import State
from scheduling.execution.run_now import run_now
from scheduling.inbox.sync import sync
from scheduling.models import SchedulerExecution
from tests.backup import dump, restore
from tests.contract.conftest import Rabbit
from tests.contract.desk import ERROR, NEVER, SOON, Desk
from tests.contract.server import Server
from tests.factories import SchedulerFactory
from tests.support import wait_for

pytestmark = pytest.mark.django_db(transaction=True)


def leave_messages_of_today(broker: RabbitBroker) -> set[int]:
    """Leave three messages in the main queue, two in a wait queue and two in the failed queue.

    Returns the ids that they name.
    """
    desk, schedule = Desk(broker), SchedulerFactory(rare=True, handler="tests.typed", params={"since_days": 2})
    rows = []
    for outcome, policy, count in ((ERROR, NEVER, 2), (ERROR, SOON, 2)):
        for _number in range(count):
            rows.append(run_now(schedule, broker))
            desk.run(outcome, policy)
    broker.consume({"main": 0})
    rows += [run_now(schedule, broker) for _number in range(3)]
    return {row.pk for row in rows}


def test_messages_of_today_run_nothing_in_a_database_of_yesterday(rabbit: Rabbit, server: Server) -> None:
    before = rabbit()
    done = run_now(SchedulerFactory(rare=True), before)
    Desk(before).run()
    yesterday = dump()
    stale = leave_messages_of_today(before)
    server.wait_count(server.topology.failed, 2)
    before.close()

    restore(yesterday)
    broker = rabbit()
    schedule = SchedulerFactory(rare=True, handler="tests.typed", params={"since_days": 1})
    new = [run_now(schedule, broker) for _number in range(7)]
    assert {row.pk for row in new} == stale  # the new rows have the ids that the old messages name

    desk, started = Desk(broker), []

    def all_ended() -> bool:
        for arrival in desk.look():
            if arrival.started:
                started.append(arrival.delivery.message)
                desk.end(arrival.delivery)
        return len(started) == 7 and server.count(server.topology.failed) == 7

    wait_for(all_ended, "the new rows have run, and the old messages are parked")
    assert desk.starts_nothing()
    assert sorted(message.execution_id or 0 for message in started) == sorted(stale)
    assert all(message.params == {"since_days": 1} for message in started)
    for row in [done, *new]:
        row.refresh_from_db()
        assert (row.state, row.attempt) == (State.SUCCEEDED.value, 1)
    wait_for(lambda: sync(broker, clock.now()).rows == 0, "every parked message has its row")
    foreign = SchedulerExecution.objects.filter(state=State.FAILED.value)
    assert foreign.count() == 7
    assert all(row.error_message for row in foreign)
    assert server.count(server.topology.failed) == 7
