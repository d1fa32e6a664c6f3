"""Names alerts in the titles of messages."""

from __future__ import annotations

from collections.abc import Set

from django.utils.translation import gettext as _

from scheduling.core.alert_rules import RuleKind
from scheduling.models import AlertNotice

OF_INSTALLATION: Set[str] = frozenset(
    {
        RuleKind.INBOX, RuleKind.RETRY_SHARE, RuleKind.NO_PRODUCER, RuleKind.NO_CONSUMER, RuleKind.BROKER_AWAY,
        RuleKind.DATABASE_AWAY, RuleKind.CLOCK, RuleKind.HOLD,
    }
)  # fmt: skip
"""Without a schedule and a run, an alert of these kinds has a subject that says no more than its kind, such as “No
producer: producers”. Only a queue without a consumer has a name of its own."""


def says_more(kind: str, key: str, *, has_row: bool) -> bool:
    """Whether the subject of an alert says more than the kind of its rule.

    Args:
        key: identifies the subject within the rule (`Situation.key`).
        has_row: whether the alert is about a schedule or a run.
    """
    return has_row or kind not in OF_INSTALLATION or (kind == RuleKind.NO_CONSUMER and key.startswith("queue "))


def title_of(event: str, severity: str, rule: str, subject: str) -> str:
    """The title of the start or the end of an alert.

    Args:
        event: `start` or `end`.
        subject: the subject of the alert; empty to leave it out.
    """
    if event == AlertNotice.Event.START:
        text = _("%(severity)s: %(rule)s: %(subject)s") if subject else _("%(severity)s: %(rule)s")
    else:
        text = _("Over: %(rule)s: %(subject)s") if subject else _("Over: %(rule)s")
    return text % {"severity": severity.upper(), "rule": rule, "subject": subject}
