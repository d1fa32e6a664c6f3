"""Writes the message that tells one or more alerts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from django.utils.translation import gettext as _

from scheduling.core.text import visible_text
from scheduling.models import Alert, AlertNotice
from scheduling.notify.delivery import Letter
from scheduling.notify.links import absolute_url

MOST_LISTED = 20
"""A message describes so many alerts. It only counts the others."""

SUBJECT_CHARS = 150
TEXT_CHARS = 10_000
"""The longest text of a message, besides its last lines. Alerts that do not fit are only counted."""

FACTS_CHARS = 100_000
"""The longest list of alerts as JSON. A webhook gets the text of the message as well."""

SEEN_CHARS, ADVICE_CHARS = 300, 200
"""So many characters are told of each alert in a message that tells several."""

START = AlertNotice.Event.START


@dataclass(frozen=True)
class Told:
    """The start or the end of one alert, as a message tells it.

    Args:
        event: `start` or `end`.
        ended_at: None if the alert is open.
        url: the page of the alert; empty if the alert is not on record, or the site's address is not known.
    """

    event: str
    rule: str
    kind: str
    severity: str
    subject: str
    seen: str
    advice: str
    started_at: datetime
    ended_at: datetime | None = None
    url: str = ""

    @classmethod
    def of(cls, alert: Alert, event: str) -> Told:
        """What a message tells of this alert."""
        ended_at = None if event == START else alert.ended_at
        return cls(
            event, visible_text(alert.rule_name), alert.kind, alert.severity, visible_text(alert.subject),
            visible_text(alert.seen), visible_text(alert.advice or ""), alert.started_at, ended_at,
            absolute_url("admin:scheduling_alert_change", alert.pk),
        )  # fmt: skip

    def facts(self) -> dict[str, Any]:
        """The same as JSON, for a webhook."""
        return {
            "event": self.event, "rule": self.rule, "kind": self.kind, "severity": self.severity,
            "subject": self.subject, "seen": self.seen, "advice": self.advice,
            "started_at": _iso(self.started_at), "ended_at": _iso(self.ended_at), "url": self.url,
        }  # fmt: skip


@dataclass(frozen=True)
class Digest:
    """What one message tells.

    Args:
        listed: the starts and ends that are described, at most `MOST_LISTED`.
        begun: how many starts it tells, with those that are only counted.
        over: how many ends.
    """

    listed: Sequence[Told]
    begun: int
    over: int

    @classmethod
    def of(cls, told: Sequence[Told]) -> Digest:
        """The digest of these starts and ends."""
        begun = sum(one.event == START for one in told)
        return cls(told[:MOST_LISTED], begun, len(told) - begun)

    @property
    def count(self) -> int:
        """How many starts and ends it tells."""
        return self.begun + self.over

    def shortened(self) -> Digest:
        """The same with shorter texts, if it tells more than one alert."""
        if self.count <= 1:
            return self
        cut = [
            replace(one, seen=visible_text(one.seen, SEEN_CHARS), advice=visible_text(one.advice, ADVICE_CHARS))
            for one in self.listed
        ]
        return replace(self, listed=cut)


def letter_of(digest: Digest, repeats: int = 0) -> Letter:
    """The letter that tells these alerts.

    Args:
        repeats: how many tries ended without an answer. Then the letter says that it may come twice.
    """
    digest = digest.shortened()
    if digest.count == 1 and digest.listed:
        subject = _title(digest.listed[0])
    else:
        subject = _("Alerts: %(begun)d begun, %(over)d over") % {"begun": digest.begun, "over": digest.over}
    blocks, room = list[str](), TEXT_CHARS
    for told in digest.listed:
        block = _block(told)
        if len(block) > room:
            break
        blocks.append(block)
        room -= len(block)
    if (more := digest.count - len(blocks)) > 0:
        blocks.append(_("and %(count)s more") % {"count": more})
    if repeats:
        blocks.append(_("This message may come twice: an earlier try ended without an answer."))
    return Letter(" ".join(visible_text(subject, SUBJECT_CHARS).split()), "\n\n".join(blocks))


def facts_of(digest: Digest, repeats: int = 0) -> Mapping[str, Any]:
    """What a webhook gets."""
    listed, room = list[dict[str, Any]](), FACTS_CHARS
    for told in digest.shortened().listed:
        facts = told.facts()
        room -= len(json.dumps(facts))
        if room < 0:
            break
        listed.append(facts)
    return {"event": "alerts", "alerts": listed, "count": digest.count, "may_be_repeated": repeats > 0}


def _title(told: Told) -> str:
    text = _("%(severity)s: %(rule)s: %(subject)s") if told.event == START else _("Over: %(rule)s: %(subject)s")
    return text % {"severity": told.severity.upper(), "rule": told.rule, "subject": told.subject}


def _block(told: Told) -> str:
    lines = [_title(told), told.seen]
    if told.event == START:
        lines += [told.advice, _("Since %(time)s.") % {"time": _time(told.started_at)}]
    else:
        times = {"since": _time(told.started_at), "until": _time(told.ended_at)}
        lines.append(_("It lasted from %(since)s to %(until)s.") % times)
    return "\n".join(line for line in [*lines, told.url] if line)


def _time(instant: datetime | None) -> str:
    return "?" if instant is None else f"{instant.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def _iso(instant: datetime | None) -> str | None:
    return None if instant is None else instant.astimezone(UTC).isoformat()
