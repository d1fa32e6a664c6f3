"""Plain SQL has spoiled one column of what the alerts read. Another alert is still told, and the heartbeat goes out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, models
from django.utils import timezone as clock

from scheduling.alerts.evaluator import Evaluator
from scheduling.alerts.tries import Try
from scheduling.core.alert_rules import RuleKind
from scheduling.models import Alert, AlertMessage, AlertNotice, AlertRule, Channel, Process, SchedulerExecution
from scheduling.models.alert_watch import AlertWatch
from scheduling.pings import heartbeat
from scheduling.pings.bounded import Ending, Request
from scheduling.processes.deployment_row import make_row_if_new
from tests.factories import (
    AlertFactory,
    AlertMessageFactory,
    AlertNoticeFactory,
    AlertRuleFactory,
    ChannelFactory,
    ProcessFactory,
    SchedulerExecutionFactory,
)
from tests.hostile.values import columns, empty, lenient, write
from tests.support import wait_for

pytestmark = pytest.mark.django_db(transaction=True)

INSTANTS = {
    "sqlite": ("2026-13-45 25:61:61", "2999-13-45 25:61:61", 5),
    "postgresql": ("infinity", "-infinity", "20000-01-01"),
    "mysql": ("0000-00-00 00:00:00", "9999-12-31 23:59:59"),
}
NO_UTF8 = "no UTF-8"
"""Stands for a text that is not UTF-8. Only SQLite stores it."""

TABLES = (AlertRule, Channel, Alert, AlertNotice, AlertMessage, Process)


def values(field: models.Field) -> Sequence[Any]:
    """Values that cannot be read or used, as far as the database takes them."""
    match field:
        case models.DateTimeField():
            return INSTANTS[connection.vendor]
        case models.JSONField():
            return "{", "[[]]"
        case models.CharField() | models.TextField():
            return "", b"\xff", NO_UTF8
        case _:
            return "x", 2**62


@pytest.fixture
def beats(settings: Any, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The addresses that the outbound heartbeat has called."""
    called: list[str] = []

    def answer(requests: Sequence[Request]) -> list[Ending]:
        called.extend(request.url for request in requests)
        return [Ending() for _request in requests]

    settings.CRON_HEARTBEAT_URL = "https://monitor.example.com/ping"
    monkeypatch.setattr(heartbeat, "send_all", answer)
    monkeypatch.setattr(Evaluator, "settles_in", 0.0)
    return called


@pytest.fixture(autouse=True)
def emptied() -> Iterator[None]:
    yield
    empty()


def clear() -> None:
    """Delete the rows of the tables that this test fills. To empty all tables takes some databases a second."""
    links, runs = AlertRule.channels.through, SchedulerExecution
    quote = connection.ops.quote_name
    with lenient(), connection.cursor() as cursor:
        for model in (AlertNotice, AlertMessage, Alert, links, AlertRule, Channel, Process, AlertWatch, runs):
            cursor.execute(f"DELETE FROM {quote(model._meta.db_table)}")


def stand() -> dict[type[models.Model], int]:
    """Rows to spoil: the alerts look at all of them. Returns their primary keys."""
    make_row_if_new()  # before there are executions: later, a missing row is a hold
    now = clock.now()
    team = ChannelFactory(tells_by_default=True)
    rule = AlertRuleFactory(kind=RuleKind.BROKER_AWAY.value)
    rule.channels.add(team)
    AlertRuleFactory(kind=RuleKind.NO_PRODUCER.value)
    # The heartbeat names this one.
    alert = AlertFactory(rule=rule, kind=RuleKind.BROKER_AWAY.value, started_at=now, seen_at=now)
    message = AlertMessageFactory(channel=team, state="waiting", next_try_at=now - timedelta(minutes=1))
    notice = AlertNoticeFactory(alert=alert, channel=team, message=message)
    made = [rule, team, alert, message, notice, ProcessFactory(producer=True)]
    return {type(row): row.pk for row in made}


def spoil(model: type[models.Model], field: models.Field, pk: int, value: Any) -> bool:
    """Write the value by SQL. Returns whether the database has taken it."""
    if value is not NO_UTF8:
        return write(model, field, pk, value) is not None
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute(f"UPDATE {model._meta.db_table} SET {field.column} = CAST(x'ff' AS TEXT) WHERE id = {pk}")
    return connection.vendor == "sqlite"


def tells(beats: list[str]) -> str:
    """Let a healthy rule find something. Returns what is wrong with what is told of it; empty if nothing is."""
    SchedulerExecutionFactory(failed=True)
    channel = ChannelFactory()
    AlertRuleFactory(kind=RuleKind.INBOX.value, number=0, name="healthy").channels.add(channel)
    sent: list[str] = []
    beats.clear()

    def send(one: Try) -> None:
        if one.channel.pk == channel.pk:
            sent.append(one.letter.subject)

    one = Evaluator(name="one", send=send)
    try:
        one.turn()
        if one.problem:
            return one.problem
        wait_for(lambda: one._sender._tries._endings.qsize() == len(one._sender._tries._under_way), "the tries end")
        wait_for(lambda: bool(beats), "the heartbeat goes out")
        one.between()
        return "" if sent and "healthy" in sent[0] else f"told: {sent}"
    finally:
        one.close()


@pytest.mark.long
@pytest.mark.parametrize("model", TABLES, ids=lambda model: model.__name__)
def test_a_spoiled_column_silences_no_other_alert(model: type[models.Model], beats: list[str]) -> None:
    wrong, stored = [], 0
    for field in columns(model, keys=False):
        for value in values(field):
            clear()
            rows = stand()
            with lenient():
                if not spoil(model, field, rows[model], value):
                    continue
            stored += 1
            if said := tells(beats):
                wrong.append(f"{field.name} is {value!r}: {said}")
    assert not wrong, "\n".join(wrong)
    assert stored
