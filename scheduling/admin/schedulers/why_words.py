"""Shows with badges and links why a schedule did or did not run at an instant."""

from __future__ import annotations

from datetime import datetime, tzinfo
from typing import TypedDict

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from scheduling.admin.ui.badges import badge, state_badge
from scheduling.admin.ui.links import execution_url
from scheduling.admin.ui.times import format_due
from scheduling.core.expected import Fate
from scheduling.core.occurrences import cron_key
from scheduling.core.why_at import Answer
from scheduling.models import Scheduler
from scheduling.operations.why import NEAR, sentence
from scheduling.operations.why_facts import Found


class Words(TypedDict):
    """An answer.

    Attributes:
        chip: the answer in a word.
        text: the answer in a sentence.
        address, number: the execution to which the answer links; empty if there is none.
        near: the occurrences before and after: a word, the instant, a badge, and the URL of the execution.
    """

    chip: SafeString
    text: str
    address: str
    number: str
    near: list[tuple[str, str, str, str]]


def words(schedule: Scheduler, found: Found, info: tzinfo) -> Words:
    """The answer in words. All times are in the zone `info`."""
    said, text, row = sentence(schedule, found, info)
    will_be_held = said is Answer.WILL_RUN and found.facts.fate is Fate.HELD
    chip = state_badge(row.state) if row is not None else _chip(Answer.HELD if will_be_held else said)
    return {
        "chip": chip,
        "text": text,
        "address": execution_url(row.pk) if row is not None else "",
        "number": _("execution %(id)s") % {"id": row.pk} if row is not None else "",
        "near": _near(found, info) if said in NEAR else [],
    }


def _chip(said: Answer) -> SafeString:
    match said:
        case Answer.WILL_RUN | Answer.SPREAD:
            return badge(_("due"), "clock", "wait")
        case Answer.WAITS:
            return badge(_("late"), "warn", "bad")
        case Answer.PAUSED | Answer.WILL_BE_LEFT_OUT:
            return badge(_("paused"), "pause", "off")
        case Answer.WILL_BE_EXCLUDED | Answer.EXCLUDED:
            return badge(_("excluded"), "dot", "off")
        case Answer.HELD:
            return badge(_("held"), "clock", "wait")
        case Answer.NO_RECORD:
            return badge(_("not on record"), "dot", "warn")
        case Answer.NOT_CREATED | Answer.OTHER_TIMES:
            return badge(_("not planned"), "dot", "off")
    return badge(_("not due"), "dot", "off")


def _near(found: Found, info: tzinfo) -> list[tuple[str, str, str, str]]:
    """The occurrences before and after the instant, with their executions."""
    lines = []
    for word, instant in ((_("Before:"), found.before), (_("After:"), found.after)):
        if instant is not None:
            lines.append((word, *_occurrence(found, instant, info)))
    return lines


def _occurrence(found: Found, instant: datetime, info: tzinfo) -> tuple[str, str, str]:
    row = (found.executions or {}).get(cron_key(instant))
    said = format_due(instant, info)
    return (said, "", "") if row is None else (said, state_badge(row.state), execution_url(row.pk))
