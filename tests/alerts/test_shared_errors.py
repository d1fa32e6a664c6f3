"""The error of a message that tells of several groups shows no group the alerts of another one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from django.utils import timezone

from scheduling.admin.alerts.told import told_of, with_notices
from scheduling.models import Alert
from scheduling.models.visibility import EVERYTHING, Visibility
from scheduling.monitoring.findings.alerts import examine
from scheduling.monitoring.findings.present import Present
from scheduling.notify import webhook
from scheduling.notify.guarded_http import Answer
from tests.alerts.support import Clock, alert, channel, send_all, sender, told
from tests.factories import GroupFactory

pytestmark = pytest.mark.django_db

INSTEAD = "The reason is shown to users who see all groups."


@pytest.fixture(autouse=True)
def echo(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the receiver repeat the request in its refusal, as many validators do."""

    def answer(_method: str, _url: str, _seconds: float, **content: Any) -> Answer:
        return Answer(422, b"cannot process " + content["data"])

    monkeypatch.setattr(webhook, "send_request", answer)


@dataclass
class Groups:
    """Two groups of users."""

    salaries: Any
    other: Any


@pytest.fixture
def groups() -> Groups:
    """Provide both groups."""
    return Groups(GroupFactory(name="salaries"), GroupFactory(name="other"))


def refused(*alerts: Alert) -> None:
    """Let a webhook without a group refuse one message about these alerts."""
    told(channel("http://host/", kind="webhook", secret="s" * 40), *alerts)
    clock = Clock()
    clock.time = timezone.now()
    send_all(sender(clock))


def shown(visible: Visibility) -> list[str]:
    """What the page of each alert and the dashboard show to a user who sees so much."""
    pages = [one.error for row in with_notices(visible.alerts(), visible) for one in told_of(row)]
    return [*pages, *(str(finding.rows) for finding in examine(Present(timezone.now(), visible)) if finding.rows)]


def test_a_user_of_one_group_does_not_read_the_alerts_of_another(groups: Groups) -> None:
    refused(alert(1, group=groups.salaries, subject="SALARIES"), alert(2, group=groups.other, subject="OTHER"))
    for group in (groups.salaries, groups.other):
        texts = shown(Visibility(frozenset({group.pk})))
        assert texts[0] == INSTEAD
        assert [INSTEAD in text for text in texts[1:]].count(True) == 1
        assert not any("422" in text for text in texts)
    assert not any("SALARIES" in text for text in shown(Visibility(frozenset({groups.other.pk}))))


def test_users_who_see_all_that_it_tells_read_the_answer(groups: Groups) -> None:
    refused(alert(1, group=groups.salaries, subject="SALARIES"), alert(2, subject="of no group"))
    both = frozenset({groups.salaries.pk, groups.other.pk})
    for visible in (EVERYTHING, Visibility(both), Visibility(frozenset({groups.salaries.pk}))):
        texts = shown(visible)
        assert texts[0].startswith("The webhook answered 422: cannot process ")
        assert not any(INSTEAD in text for text in texts)
    assert shown(Visibility(frozenset({groups.other.pk})))[0] == INSTEAD
