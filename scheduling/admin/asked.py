"""Asked: what the page in between showed an operator, and what they said on it."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _

from scheduling.admin.confirm import key_of
from scheduling.admin.paging import count_of_state
from scheduling.models import SchedulerExecution

Row = TypeVar("Row", bound=SchedulerExecution)

TYPE_ABOVE = 100
"""With "all that match", more than this are confirmed by typing how many they are."""

MOST_MINUTES = 24 * 60


@dataclass(frozen=True)
class Asked:
    """A POST of the inbox, read once.

    Args:
        posted: it comes from the page in between; else that page is still to be shown.
        across: it is about all that match the filter and search of the address, not about chosen rows.
        at: when the page was made; what has failed since was not on it, and is left alone.
        count: how many the page said; None if it said nothing.
        query: the filter and search that the page was made with.
        now_query: those of the present address.
        typed: what was typed to confirm.
        minutes: over how many to spread; None for what is no such number.
        canary: one is to go first.
    """

    posted: bool
    across: bool
    at: datetime | None
    count: int | None
    query: str
    now_query: str
    typed: str
    minutes: int | None
    canary: bool
    reason: str
    key: uuid.UUID

    @classmethod
    def of(cls, request: HttpRequest) -> Asked:
        """What cannot be read is as if it were not there."""
        post = request.POST
        return cls(
            posted=bool(post.get("post")),
            across=post.get("select_across") == "1",
            at=_instant(post.get("asked_at", "")),
            count=_number(post.get("count", "")),
            query=post.get("query", ""),
            now_query=request.GET.urlencode(),
            typed="".join(post.get("typed", "").split()),
            minutes=_minutes(post.get("minutes", "")),
            canary=bool(post.get("canary")),
            reason=post.get("reason", "").strip(),
            key=key_of(request),
        )

    def rows(self, queryset: QuerySet[Row]) -> QuerySet[Row]:
        """Those of a selection that stood there when the page was made."""
        if self.at is None:
            return queryset
        return queryset.filter(Q(finished_at__lte=self.at) | Q(finished_at__isnull=True))

    def difference(self, queryset: QuerySet[Row]) -> str:
        """What has come in between the page and its POST, as a sentence; empty if nothing.

        Fewer than were shown is no such thing: whoever agreed to more has agreed to them.
        """
        if not self.posted or not self.across:
            return ""
        if self.query != self.now_query:
            return _("The filter is not the one that you saw. Look again: this is what matches now.")
        now = count_of_state(self.rows(queryset))
        if self.count is None or now > self.count:
            return _("%(now)d match now, and you saw %(seen)d. Look again.") % {"now": now, "seen": self.count or 0}
        return ""

    def untyped(self) -> str:
        """The sentence that asks to type the number, if that is wanted and was not done."""
        if not self.posted or self.count is None or not must_type(self.across, self.count):
            return ""
        return "" if self.typed == str(self.count) else _("Type %(count)d to confirm.") % {"count": self.count}


def must_type(across: bool, count: int) -> bool:
    """Whether so many are confirmed by typing their number."""
    return across and count > TYPE_ABOVE


def _instant(text: str) -> datetime | None:
    try:
        found = parse_datetime(text)
    except ValueError:
        return None
    return found if found is not None and found.tzinfo is not None else None


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else None


def _minutes(text: str) -> int | None:
    found = _number(text.strip() or "0")
    return found if found is not None and found <= MOST_MINUTES else None
