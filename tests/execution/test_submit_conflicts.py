"""A conflict after the commit of runs that code asks for: it is no reason to insert the runs again."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence

import pytest
from django.db import OperationalError, connection, connections, transaction
from django.utils import timezone as clock

from scheduling.broker.database import DatabaseBroker
from scheduling.core.messages import TaskMessage
from scheduling.execution import publish as publishing
from scheduling.execution.submit import Asked, submit
from scheduling.models import SchedulerExecution
from tests.factories import WorkerFactory
from tests.support import wait_for

NOOP = "tests.noop"


class Rival(DatabaseBroker):
    """Confirms all messages. Meanwhile another transaction locks the second run, and then wants the first one.

    The caller marks the runs in their order, so that both wait for each other and the database ends one of them.
    """

    embedded = False

    def __init__(self) -> None:
        super().__init__()
        self._locked = threading.Event()
        self.ends: list[str] = []
        self.thread = threading.Thread(target=self._lock_crosswise)

    def publish(self, messages: Sequence[TaskMessage], queue: str) -> set[int]:
        keys = sorted(message.execution_id or 0 for message in messages)
        self._keys = keys
        self.thread.start()
        assert self._locked.wait(20)
        return set(keys)

    def _lock_crosswise(self) -> None:
        first, second = self._keys
        rows = SchedulerExecution.objects
        try:
            with transaction.atomic():
                # InnoDB ends the transaction that has changed less.
                rows.filter(pk=second).update(requested_by="rival")
                for number in range(20):
                    WorkerFactory(name=f"tests.rival_{number}")
                self._locked.set()
                wait_for(_waits, "the caller waits for the second run")
                rows.filter(pk=first).update(requested_by="rival")
            self.ends.append("committed")
        except OperationalError as error:
            self.ends.append(f"ended: {error}")
        finally:
            connections.close_all()


def _waits() -> bool:
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SELECT COUNT(*) FROM pg_locks WHERE NOT granted")
        else:
            time.sleep(0.15)  # the server renews this table only if it was not read for 0.1 s
            cursor.execute("SELECT COUNT(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'")
        return bool(cursor.fetchone()[0])


@pytest.fixture
def rival() -> Iterator[Rival]:
    WorkerFactory(name=NOOP)
    found = Rival()
    yield found
    found.thread.join(30)


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite locks the whole file, so there is no deadlock")
def test_a_deadlock_with_the_marking_of_confirmed_runs_inserts_nothing_again(rival: Rival) -> None:
    asked = [Asked(NOOP), Asked(NOOP)]
    found = submit(asked, rival, clock.now())
    rival.thread.join(30)
    assert rival.ends == ["committed"], "the deadlock has ended the other transaction, so this test has shown nothing"
    rows = SchedulerExecution.objects.order_by("pk").values_list("pk", "state")
    assert list(rows) == [(pk, "queued") for pk, _new in found]
    assert len(found) == 2


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("count", [1, 3])
def test_a_database_that_refuses_the_marking_does_not_refuse_the_runs(
    count: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    WorkerFactory(name=NOOP)

    class Confirms(DatabaseBroker):
        embedded = False

        def publish(self, messages: Sequence[TaskMessage], queue: str) -> set[int]:
            return {message.execution_id or 0 for message in messages}

    def refuse(*_args: object) -> int:
        raise OperationalError(1213, "Deadlock found when trying to get lock; try restarting transaction")

    monkeypatch.setattr(publishing, "mark_published", refuse)
    found = submit([Asked(NOOP)] * count, Confirms(), clock.now())
    assert [pk for pk, _new in found] == list(SchedulerExecution.objects.order_by("pk").values_list("pk", flat=True))
    assert set(SchedulerExecution.objects.values_list("state", flat=True)) == {"claimed"}
    assert "are not recorded, so a sweep publishes them again" in caplog.text


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("confirm", [True, False])
def test_a_database_that_goes_away_after_the_commit_does_not_refuse_the_runs(
    confirm: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    WorkerFactory(name=NOOP)

    def go_away(*_args: object) -> bool:
        raise OperationalError(2006, "Server has gone away")

    class Remote(DatabaseBroker):
        embedded = False

    monkeypatch.setattr(publishing.guard, "must_wait", go_away)
    found = submit([Asked(NOOP), Asked(NOOP)], Remote(), clock.now(), confirm)
    assert SchedulerExecution.objects.filter(pk__in=[pk for pk, _new in found]).count() == 2
    assert "2 runs are recorded, and a sweep publishes them" in caplog.text
