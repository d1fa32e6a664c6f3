"""How many messages a consumer asks for."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from scheduling.broker.database import DatabaseBroker
from scheduling.conf import Conf
from scheduling.consumer.supervisor import Supervisor
from scheduling.core.batch import Batching
from scheduling.handlers import Handler
from scheduling.management.prefetch import MOST, with_batches
from scheduling.processes.shutdown import ShutdownRequest


class Asked(DatabaseBroker):
    """A transport that records what it is asked for."""

    prefetch: Mapping[str, int] | None = None

    def consume(self, prefetch: Mapping[str, int]) -> None:
        self.prefetch = dict(prefetch)


@pytest.mark.parametrize(
    ("prefetch", "expected"),
    [
        (None, {"main": 2, "main.high": 2, "main.low": 2, "mail": 2, "mail.high": 2, "mail.low": 2}),
        ({"mail": 30}, {"main": 2, "main.high": 2, "main.low": 2, "mail": 30, "mail.high": 30, "mail.low": 30}),
    ],
)
def test_it_asks_for_a_message_of_each_work_queue_for_each_slot_or_for_more(
    prefetch: dict[str, int] | None, expected: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Supervisor, "_may_start", property(lambda self: not self.draining))
    broker = Asked()
    with ShutdownRequest() as stop:
        supervisor = Supervisor(broker, Conf(), stop, concurrency=2, queues=("main", "mail"), prefetch=prefetch)
        supervisor._subscribe()
        assert broker.prefetch == expected
        stop.asked = 1
        supervisor._subscribe()
        assert broker.prefetch == dict.fromkeys(expected, 0)


@pytest.mark.parametrize(
    ("queue", "size", "given", "expected"),
    [
        ("", 100, 2, {"main": 200, "mail": 2}),
        ("mail", 100, 2, {"main": 2, "mail": 200}),
        ("mail", 3, 30, {"main": 30, "mail": 30}),
        ("elsewhere", 100, 2, {"main": 2, "mail": 2}),
        ("main", 9_000, 2, {"main": MOST, "mail": 2}),
        ("main", 0, 2, {"main": 2, "mail": 2}),
    ],
)
def test_each_slot_may_hold_the_messages_of_one_batch(
    queue: str, size: int, given: int, expected: dict[str, int]
) -> None:
    batch = Batching(size) if size else None
    handler = Handler(type="worker", name="one", call=print, queue=queue, batch=batch)
    assert with_batches({"main": given, "mail": given}, [handler], concurrency=2) == expected
