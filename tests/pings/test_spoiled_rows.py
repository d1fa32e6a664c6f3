"""Plain SQL has spoiled one column of a schedule or of a ping. The pings of other schedules are sent all the same."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.db import connection, models
from django.utils import timezone as clock

from scheduling.models import Ping, Scheduler, SchedulerExecution
from scheduling.pings.sender import Sender
from tests.factories import ManualExecutionFactory, PingFactory, SchedulerFactory
from tests.hostile.values import columns, empty, lenient, write
from tests.pings.healthchecks_server import Healthchecks

pytestmark = pytest.mark.django_db(transaction=True)

LATE = {"sqlite": "2999-13-45 25:61:61", "postgresql": "infinity", "mysql": "0000-00-00 00:00:00"}
"""An instant that cannot be read. It lies far ahead, except on MySQL."""


@pytest.fixture(autouse=True)
def emptied() -> Iterator[None]:
    yield
    empty()


def waiting(healthchecks: Healthchecks, name: str) -> Ping:
    """A ping of a schedule of its own, which is due."""
    row = SchedulerFactory(ping_url=f"http://{healthchecks.host}/ping/{name}", rare=True)
    execution = ManualExecutionFactory(scheduler=row, state="succeeded")
    at = clock.now() - timedelta(seconds=1)
    found: Ping = PingFactory(execution=execution, waiting=True, tries=0, error="", at=at)
    return found


def spoiled(field: models.Field, pk: int, value: object) -> bool:
    with lenient():
        return write(field.model, field, pk, value) is not None


@pytest.mark.parametrize("model", [Scheduler, Ping], ids=lambda model: model.__name__)
def test_a_spoiled_column_delays_no_ping_of_another_schedule(
    healthchecks: Healthchecks, model: type[models.Model]
) -> None:
    stored = 0
    for field in columns(model, keys=False):
        is_instant = isinstance(field, models.DateTimeField)
        for value in (LATE[connection.vendor],) if is_instant else ("x", b"\xff"):
            for table in (Ping, SchedulerExecution, Scheduler):
                with connection.cursor() as cursor, lenient():
                    cursor.execute(f"DELETE FROM {connection.ops.quote_name(table._meta.db_table)}")
            bad, good = waiting(healthchecks, "bad"), waiting(healthchecks, "good")
            if not spoiled(field, bad.scheduler_id if model is Scheduler else bad.pk, value):
                continue
            stored += 1
            sender = Sender()
            sender.switch_on()
            sender._turn()
            assert Ping.objects.only("state").get(pk=good.pk).state == "sent", f"{field.name} is {value!r}"
    assert stored


def test_a_ping_with_an_unreadable_time_is_given_up(healthchecks: Healthchecks) -> None:
    bad = waiting(healthchecks, "bad")
    assert spoiled(Ping._meta.get_field("at"), bad.pk, LATE[connection.vendor])
    sender = Sender()
    sender.switch_on()
    sender._turn()
    assert Ping.objects.filter(pk=bad.pk).values_list("state", flat=True).get() in ("dropped", "sent")
