"""The span of time that the filters of the list of executions choose, and the primary keys at its ends.

`first_keys` looks up both keys at once, once for each request.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, time, timedelta

from django.http import HttpRequest
from django.utils import timezone as clock
from django.utils.translation import gettext as _

from scheduling.core.messages import FIRST_YEAR, LAST_YEAR
from scheduling.models import SchedulerExecution
from scheduling.operations.spans import Span, span_of

WITHIN, SINCE, UNTIL = "within", "from", "to"
"""The parameters of the list's URL."""

NIGHT = "night"
NIGHT_BEGINS, NIGHT_ENDS = time(20), time(8)


class BadSpan(ValueError):
    """A text in the URL is no date and time, or one that no execution can have."""


def last_night(now: datetime) -> tuple[datetime, datetime]:
    """The night that ended last, or the present one before it ends: from 20:00 to 08:00 on the clock of `now`."""
    today = now.date()
    ends = datetime.combine(today, NIGHT_ENDS, now.tzinfo)
    return datetime.combine(today - timedelta(days=1), NIGHT_BEGINS, now.tzinfo), ends


def night_words(now: datetime) -> str:
    """The last night as text, such as `last night (20:00 to 08:00 CET)`; before it ends, `to now`."""
    _begins, ends = last_night(now)
    text = _("last night (20:00 %(zone)s to now)") if now < ends else _("last night (20:00 to 08:00 %(zone)s)")
    return text % {"zone": now.tzname()}


def instant(text: str) -> datetime | None:
    """The instant of a text such as `2026-11-22T03:00`, on the viewer's clock; None if the text is empty.

    Raises:
        BadSpan: the text is no date and time, or lies outside the years that executions can have.
    """
    if not text.strip():
        return None
    try:
        found = datetime.fromisoformat(text.strip()[:32])
        if not FIRST_YEAR < found.year < LAST_YEAR:
            raise BadSpan(text)
        return clock.make_aware(found) if clock.is_naive(found) else found.astimezone(clock.get_current_timezone())
    except (ValueError, OverflowError) as error:
        raise BadSpan(text) from error


def night_of(request: HttpRequest) -> Span:
    """The span "last night"."""
    return _cached(request, "night", *last_night(clock.localtime()))


def between(request: HttpRequest) -> Span:
    """The span of the parameters `from` and `to`.

    Raises:
        BadSpan: a parameter is no date and time.
    """
    return _cached(request, "between", instant(request.GET.get(SINCE, "")), instant(request.GET.get(UNTIL, "")))


def end_key(request: HttpRequest) -> int:
    """The primary key at the end of the chosen time; without an end, the one after the newest row."""
    ends = []
    if request.GET.get(WITHIN) == NIGHT:
        ends.append(night_of(request).end)
    with suppress(BadSpan):
        ends.append(between(request).end)
    known = [end for end in ends if end is not None]
    if known:
        return min(known)
    return (SchedulerExecution.objects.order_by("-pk").values_list("pk", flat=True).first() or 0) + 1


def _cached(request: HttpRequest, name: str, since: datetime | None, until: datetime | None) -> Span:
    spans: dict[str, Span] = request.__dict__.setdefault("_spans", {})
    if name not in spans:
        spans[name] = span_of(since, until)
    return spans[name]
