"""Alerts, channels and a sender for tests."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from threading import Thread
from typing import Any

import pytest

from scheduling.alerts.sending import Claim, Sender
from scheduling.alerts.tries import Tries
from scheduling.core.alert_rules import RuleKind
from scheduling.models import Alert, AlertMessage, AlertNotice, AlertRule, Channel
from tests.support import NOON, wait_for


class Clock:
    """The time of the database, which the test moves."""

    def __init__(self) -> None:
        self.time = NOON

    def now(self) -> datetime:
        """The time."""
        return self.time

    def pass_seconds(self, seconds: float) -> None:
        """Let time pass."""
        self.time += timedelta(seconds=seconds)


def channel(address: str, name: str = "team", **values: Any) -> Channel:
    """A chat channel, stored."""
    row: Channel = Channel.objects.create(name=name, address=address, **values)
    return row


def only_rule(kind: RuleKind) -> AlertRule:
    """A critical rule of this kind, stored. There is no other one."""
    AlertRule.objects.all().delete()
    row: AlertRule = AlertRule.objects.create(name=kind.value, kind=kind.value, severity="critical")
    return row


def alert(number: int = 0, **values: Any) -> Alert:
    """An alert, stored."""
    given = {
        "rule_name": "rule", "kind": RuleKind.BREAKER.value, "severity": "warning", "key": f"k{number}",
        "subject": f"subject {number}", "seen": "seen", "started_at": NOON, "seen_at": NOON,
    }  # fmt: skip
    return Alert(**{**given, **values})


def told(to: Channel, *alerts: Alert, event: str = "start") -> None:
    """Store these alerts, with a notice for the channel that waits."""
    rows = Alert.objects.bulk_create(alerts)
    if any(row.pk is None for row in rows):  # a database that returns no primary keys
        rows = list(Alert.objects.filter(notices=None))
    AlertNotice.objects.bulk_create([AlertNotice(alert=row, channel=to, event=event) for row in rows])


def sender(clock: Clock, **values: Any) -> Sender:
    """A sender with this clock."""
    tries: Tries[Claim] = Tries(lambda: None, **values)
    return Sender(tries, clock.now)


def send_all(by: Sender, may_go_on: Callable[[], bool] = lambda: True, *, only_holds: bool = False) -> None:
    """Send what is due, and wait until each try has ended and is on record."""
    by.begin(may_go_on, only_holds=only_holds)
    wait_for(lambda: by.record() >= 0 and by.idle, "every try has ended")


def states() -> list[str]:
    """The states of the messages, in their order."""
    return list(AlertMessage.objects.order_by("pk").values_list("state", flat=True))


def no_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process have no room for another thread that sends."""

    def refuse(thread: Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(Thread, "start", refuse)
