"""Writes the message that tells one or more alerts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from scheduling.alerts.titles import says_more, title_of
from scheduling.conf import get_conf
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
        advice: what to do; empty at the end.
        ended_at: None at the start.
        url: the page of the alert; empty if the alert is not on record, or the site's address is not known.
        key: identifies the subject within the rule.
        has_row: whether it is about a schedule or a run.
        has_ended: whether the alert is over. The message about its start may be later than its end.
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
    key: str = ""
    has_row: bool = False
    has_ended: bool = False

    @classmethod
    def of(cls, alert: Alert, event: str) -> Told:
        """What a message tells of this alert."""
        ended_at, advice = (None, alert.advice) if event == START else (alert.ended_at, "")
        return cls(
            event, visible_text(alert.rule_name), alert.kind, alert.severity, visible_text(alert.subject),
            visible_text(alert.seen), visible_text(advice or ""), alert.started_at, ended_at,
            absolute_url("admin:scheduling_alert_change", alert.pk),
            str(alert.key), alert.schedule_id is not None or alert.execution is not None, alert.ended_at is not None,
        )  # fmt: skip

    @property
    def same(self) -> tuple[object, ...]:
        """Equal for the start and the end of one alert."""
        return self.kind, self.rule, self.key, self.started_at

    @property
    def title(self) -> str:
        """What the message says first."""
        named = says_more(self.kind, self.key, has_row=self.has_row)
        return title_of(self.event, self.severity, self.rule, self.subject if named else "")

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
    if site := _site():
        blocks.append(_("Site: %(name)s") % {"name": site})
    return Letter(_subject(digest), "\n\n".join(blocks))


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


def _subject(digest: Digest) -> str:
    """The title of the most urgent alert that is open, or else of the most urgent one, and the number of the others.

    It is one line. An alert whose start and end are in the same message counts once.
    """
    ends = [told for told in digest.listed if told.event != START]
    open_ = [told for told in digest.listed if told.event == START and not told.has_ended]
    first = next(iter([*open_, *ends, *digest.listed]), None)
    if first is None:  # no row can be read
        return _("Alerts: %(count)d") % {"count": digest.count}
    over = {told.same for told in ends}
    both = sum(told.event == START and told.same in over for told in digest.listed)
    if (more := digest.count - both - 1) <= 0:
        return _cut(first.title, SUBJECT_CHARS)
    text = ngettext("%(title)s, and %(count)d more", "%(title)s, and %(count)d more", more)
    room = SUBJECT_CHARS - len(text % {"title": "", "count": more})
    return text % {"title": _cut(first.title, room), "count": more}


def _site() -> str:
    """Which installation the message is about: the host of its address, else its name. Empty if it has none."""
    conf = get_conf()
    return urlsplit(conf.site_url).hostname or conf.deployment


def _cut(title: str, chars: int) -> str:
    return " ".join(visible_text(title, chars).split())


def _block(told: Told) -> str:
    lines = [told.title]
    if told.event == START:
        lines += [told.seen, told.advice, _("Since %(time)s.") % {"time": _time(told.started_at)}]
    else:  # also if its rule was turned off: nothing says that all is well again
        times = {"since": _time(told.started_at), "until": _time(told.ended_at)}
        lines += [_("The alert is over. It was: %(seen)s") % {"seen": told.seen}]
        lines += [_("It lasted from %(since)s to %(until)s.") % times]
    return "\n".join(line for line in [*lines, told.url] if line)


def _time(instant: datetime | None) -> str:
    return "?" if instant is None else f"{instant.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def _iso(instant: datetime | None) -> str | None:
    return None if instant is None else instant.astimezone(UTC).isoformat()
