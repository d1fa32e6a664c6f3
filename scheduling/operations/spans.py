"""A span of time in which executions fell due, and the primary keys at its ends. `first_keys` looks up both at once."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import QuerySet

from scheduling.conf import get_conf
from scheduling.models.first_keys import first_keys


@dataclass(frozen=True)
class Span:
    """A span of time; None for an end that is open.

    Args:
        first: rows before this primary key were claimed before the span.
        end: rows from this primary key on were claimed after the span.
        last: rows from this primary key on were claimed so late after the span that they did not fall due in it. (An
            occurrence runs late by the catch-up window at most.)
    """

    since: datetime | None
    until: datetime | None
    first: int | None = None
    end: int | None = None
    last: int | None = None


def span_of(since: datetime | None, until: datetime | None) -> Span:
    """The span between two instants, with its primary keys."""
    late = timedelta(seconds=get_conf().catch_up_seconds)
    wanted = [*([since] if since else []), *([until, until + late] if until else [])]
    keys = first_keys(wanted) if wanted else []
    first = keys.pop(0) if since else None
    end, last = keys or (None, None)
    return Span(since, until, first, end, last)


def within(queryset: QuerySet, span: Span) -> QuerySet:
    """The executions that fell due within the span. Primary keys leave out most others, because this is fast."""
    bounds: dict[str, Any] = {
        "pk__gte": span.first,
        "scheduled_at__gte": span.since,
        "pk__lt": span.last,
        "scheduled_at__lt": span.until,
    }
    return queryset.filter(**{name: value for name, value in bounds.items() if value is not None})
