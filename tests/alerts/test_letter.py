"""The text of a message: what it is about, which site sends it, and that an end does not read like a start."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from scheduling.alerts.digest import digest_of
from scheduling.alerts.letter import SUBJECT_CHARS, Digest, Told, facts_of, letter_of
from scheduling.core.alert_rules import RuleKind
from scheduling.models import Alert, AlertMessage, AlertNotice, Channel
from scheduling.notify.delivery import Letter
from tests.alerts.support import alert, channel, told
from tests.support import NOON

SEEN = "No producer is alive: no schedule runs."
ENDED_AT = NOON + timedelta(minutes=5)


def about(number: int = 0, rule_name: str = "No producer", **values: Any) -> Alert:
    """An alert that is not stored."""
    given = {
        "kind": RuleKind.NO_PRODUCER.value, "severity": "critical", "key": "producers", "subject": "producers",
        "seen": SEEN, "advice": "Start: manage.py run_scheduler",
    }  # fmt: skip
    return alert(number, rule_name=rule_name, **{**given, **values})


def starts(*alerts: Alert) -> list[Told]:
    return [Told.of(one, "start") for one in alerts]


def ends(*alerts: Alert) -> list[Told]:
    for one in alerts:
        one.ended_at = ENDED_AT
    return [Told.of(one, "end") for one in alerts]


def letter(*told: Told) -> Letter:
    return letter_of(Digest.of(told))


def test_the_end_says_what_it_was_and_not_that_it_is_so() -> None:
    (over,) = ends(about())
    found = letter(over)
    assert found.subject == "Over: No producer"
    assert found.text.splitlines() == [
        "Over: No producer",
        f"The alert is over. It was: {SEEN}",
        "It lasted from 2026-03-10 12:00:00 UTC to 2026-03-10 12:05:00 UTC.",
    ]
    (facts,) = facts_of(Digest.of([over]))["alerts"]
    assert (facts["subject"], facts["seen"], facts["advice"]) == ("producers", SEEN, "")


def test_the_start_has_the_advice() -> None:
    (begun,) = starts(about())
    assert letter(begun).text.splitlines()[1:3] == [SEEN, "Start: manage.py run_scheduler"]
    (facts,) = facts_of(Digest.of([begun]))["alerts"]
    assert facts["advice"] == "Start: manage.py run_scheduler"


def test_the_subject_of_several_names_the_most_urgent_one_that_lasts() -> None:
    slow = about(rule_name="Slow", kind=RuleKind.SLOW.value, severity="warning", subject="night", key="k")
    assert letter(*starts(about(), slow)).subject == "CRITICAL: No producer, and 1 more"
    over, (begun,) = ends(about(), about(rule_name="Disk")), starts(slow)
    assert letter(*over, begun).subject == "WARNING: Slow: night, and 2 more"
    assert letter(*over).subject == "Over: No producer, and 1 more"


def test_a_start_that_is_told_with_its_end_is_over() -> None:
    row = about(ended_at=ENDED_AT)
    both = [*starts(row), *ends(row)]
    assert letter(*both).subject == "Over: No producer"
    assert letter(*both, *ends(about(rule_name="Disk"))).subject == "Over: No producer, and 1 more"


def test_a_long_title_leaves_room_for_the_number() -> None:
    (long,) = starts(about(rule_name="r" * 100, kind=RuleKind.SLOW.value, subject="s\n" * 100))
    for digest in (Digest([long], 1, 0), Digest([long], 1_000, 0)):
        subject = letter_of(digest).subject
        assert len(subject) <= SUBJECT_CHARS
        assert "\n" not in subject
        assert digest.count == 1 or subject.endswith("…, and 999 more")


def test_a_message_whose_rows_cannot_be_read_counts_them() -> None:
    assert letter_of(Digest([], 3, 2)).subject == "Alerts: 5"


@pytest.mark.parametrize(
    ("kind", "key", "subject", "title"),
    [
        (RuleKind.NO_PRODUCER, "producers", "producers", "CRITICAL: rule"),
        (RuleKind.NO_CONSUMER, "consumers", "consumers", "CRITICAL: rule"),
        (RuleKind.NO_CONSUMER, "queue mail", "queue “mail”", "CRITICAL: rule: queue “mail”"),
        (RuleKind.INBOX, "inbox of group 3", "failed inbox", "CRITICAL: rule"),
        (RuleKind.BROKER_AWAY, "alarm", "broker", "CRITICAL: rule"),
        (RuleKind.DATABASE_AWAY, "", "database", "CRITICAL: rule"),
        (RuleKind.HOLD, "hold", "deployment", "CRITICAL: rule"),
        (RuleKind.DISK, "disk DATA_DIR of a", "disk of DATA_DIR on a", "CRITICAL: rule: disk of DATA_DIR on a"),
        (RuleKind.BREAKER, "breaker queue mail", "breaker of mail", "CRITICAL: rule: breaker of mail"),
    ],
)
def test_the_title_repeats_no_subject_that_the_kind_has_anyway(
    kind: RuleKind, key: str, subject: str, title: str
) -> None:
    row = about(rule_name="rule", kind=kind.value, key=key, subject=subject)
    assert letter(*starts(row)).subject == title


def test_a_schedule_and_a_run_are_named() -> None:
    row = about(rule_name="Full", kind=RuleKind.INBOX.value, key="inbox", subject="night", schedule_id=7)
    assert letter(*starts(row)).subject == "CRITICAL: Full: night"
    row.schedule_id, row.execution = None, 7
    assert letter(*ends(row)).subject == "Over: Full: night"


@pytest.mark.parametrize(
    ("url", "name", "line"),
    [
        ("https://cron.example.com:8443/x", "production", "Site: cron.example.com"),
        ("", "production", "Site: production"),
    ],
)
def test_the_message_says_which_site_it_is_about(settings: Any, url: str, name: str, line: str) -> None:
    assert "Site:" not in letter(*starts(about())).text
    settings.CRON_SITE_URL, settings.CRON_DEPLOYMENT = url, name
    assert letter(*starts(about(), about())).text.splitlines().count(line) == 1
    assert letter(*starts(about(pk=1))).text.splitlines()[-1] == line


@pytest.mark.django_db
def test_what_lasts_is_described_before_what_is_over() -> None:
    team: Channel = channel("json://host/")
    over = [about(key=f"over {number}", ended_at=ENDED_AT) for number in range(30)]
    told(team, *over, event="end")
    told(team, about(severity="info", rule_name="Slow"))
    message = AlertMessage.objects.create(channel=team, channel_name="team", created_at=NOON, delivery_id="d")
    AlertNotice.objects.update(message=message)
    assert letter_of(digest_of(message)).subject == "INFO: Slow, and 30 more"
