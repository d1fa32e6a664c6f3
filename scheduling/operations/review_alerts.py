"""The alerts that a review lists."""

from __future__ import annotations

from django.db.models import Q
from django.utils.translation import gettext as _

from scheduling.core.review import MOST_ROWS
from scheduling.core.review_range import Range
from scheduling.core.text import visible_text
from scheduling.models import Alert, AlertRule
from scheduling.models.visibility import Visibility

LINE_CHARS = 300

_SEVERITIES = dict(AlertRule.Severities.choices)

MOST_READ = 10 * MOST_ROWS
"""So many alerts are read. The review counts those that it does not list up to this number."""


def alert_lines(days: Range, visible: Visibility) -> list[str]:
    """A line about each alert that was on in these days, the newest first, at most `MOST_READ`.

    Args:
        visible: whose alerts are listed.

    Raises:
        ValueError: plain SQL has written a time that Python cannot read.
        django.db.DatabaseError: the database cannot be reached.
    """
    was_on = Q(ended_at=None) | Q(ended_at__gte=days.since)
    rows = visible.only(Alert.objects.filter(was_on, started_at__lt=days.until)).order_by("-started_at", "-pk")
    columns = rows.values_list("started_at", "ended_at", "severity", "rule_name", "seen")
    return [_line(days, *values) for values in columns[:MOST_READ]]


def _line(days: Range, started_at: object, ended_at: object, severity: str, rule: str, seen: str) -> str:
    facts = {"start": _time(days, started_at), "end": _time(days, ended_at), "rule": rule, "seen": seen}
    text = _("%(start)s to %(end)s: %(rule)s. %(seen)s") if ended_at else _("since %(start)s: %(rule)s. %(seen)s")
    return visible_text(f"{_SEVERITIES.get(severity, severity)}, {text % facts}", LINE_CHARS)


def _time(days: Range, instant: object) -> str:
    return f"{instant.astimezone(days.info):%Y-%m-%d %H:%M}" if instant else ""  # type: ignore[attr-defined]
