"""The ping of a start is written together with the start, also where one statement needs no transaction."""

from __future__ import annotations

import uuid

import pytest
from django.db import OperationalError
from django.utils import timezone as clock

from scheduling.broker import Delivery
from scheduling.broker.database import DatabaseBroker
from scheduling.consumer import row_writer
from scheduling.consumer.acknowledge import Answers
from scheduling.consumer.due_retries import Rescue
from scheduling.consumer.row_writer import RowWriter
from scheduling.handlers.run_config import RunConfigs
from scheduling.models import Ping, SchedulerExecution
from scheduling.models.execution import message_of
from tests.factories import ManualExecutionFactory, SchedulerFactory

pytestmark = pytest.mark.django_db(transaction=True)


class Remote(DatabaseBroker):
    """A transport outside of the database that brings one message."""

    embedded = False
    receiving = True

    def __init__(self, row: SchedulerExecution) -> None:
        super().__init__()
        self.row = row

    def take(self, *_arguments: object, **_options: object) -> list[Delivery]:
        return [Delivery(message_of(self.row), queue="main")]

    def release(self, *_arguments: object) -> None:
        """Do nothing."""


def writer(row: SchedulerExecution) -> RowWriter:
    broker = Remote(row)
    made = RowWriter(broker, ["main"], 15, RunConfigs(), Answers(broker), Rescue(broker, ["main"]))
    made._has_limits = False  # as in a project whose handlers have no limit: a single start needs no transaction
    return made


def test_a_start_without_its_ping_is_undone(monkeypatch: pytest.MonkeyPatch) -> None:
    schedule = SchedulerFactory(rare=True, ping_url=f"https://hc.example.com/{uuid.uuid4()}")
    row = ManualExecutionFactory(scheduler=schedule)
    real = row_writer.note_starts

    def lost(*_arguments: object) -> int:
        raise OperationalError("the connection is lost")

    monkeypatch.setattr(row_writer, "note_starts", lost)
    monkeypatch.setattr(row_writer, "is_away", lambda _error: True)
    with pytest.raises(OperationalError):
        writer(row).write((), 1, clock.now())
    row.refresh_from_db()
    assert (row.state, row.attempt) == ("queued", 0)
    monkeypatch.setattr(row_writer, "note_starts", real)
    writer(row).write((), 1, clock.now())
    row.refresh_from_db()
    assert (row.state, Ping.objects.get().event) == ("running", "start")
