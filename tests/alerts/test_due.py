"""Which messages are due."""

from __future__ import annotations

import pytest

from scheduling.core.alert_retry import LONGEST_SECONDS
from scheduling.core.alert_rules import RuleKind
from scheduling.models import AlertMessage
from scheduling.notify.delivery import NotSent
from tests.alerts.support import Clock, alert, channel, send_all, sender, states, told
from tests.notify.chat_server import ChatServer

pytestmark = pytest.mark.django_db


def test_the_server_may_ask_for_an_hour_and_for_no_more(chat: ChatServer) -> None:
    clock = Clock()
    told(channel(f"http://{chat.host}/", kind="webhook", secret="s" * 40), alert(1))
    by = sender(clock)
    chat.status, chat.headers["Retry-After"] = 429, "7200"
    send_all(by)
    for seconds in (0, 1_800, 1_799):
        clock.pass_seconds(seconds)
        send_all(by)
        assert len(chat.arrived) == 1
    clock.pass_seconds(1)
    send_all(by)
    assert len(chat.arrived) == 2


def test_a_held_database_sends_no_message_that_tells_of_another_alert_too() -> None:
    """The message is that of the site whose database was copied. The original sends it."""
    clock, texts = Clock(), list[str]()
    team, other = channel("json://host/", "team"), channel("json://host/", "other")

    def refuse(_one: object) -> None:
        raise NotSent("later")

    hold = {"kind": RuleKind.HOLD.value, "rule_name": "held"}
    told(team, alert(1, **hold), alert(2, subject="payroll"))
    told(other, alert(3, **hold))
    send_all(sender(clock, send=refuse))
    assert states() == ["waiting", "waiting"]
    clock.pass_seconds(LONGEST_SECONDS)
    copy = sender(clock, send=lambda one: texts.append(one.letter.text))
    send_all(copy, only_holds=True)
    assert len(texts) == 1
    assert "payroll" not in texts[0]
    told(team, alert(4, **hold))
    send_all(copy, only_holds=True)
    assert ["payroll" in text for text in texts] == [False, False], "the notice of the copy has a message of its own"
    assert AlertMessage.objects.filter(channel=team, state="waiting").count() == 1
    send_all(copy)
    assert "payroll" in texts[2]
