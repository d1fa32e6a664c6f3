"""Finds calendars in the name of an actor, and makes their shapes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone as clock
from django.utils.crypto import salted_hmac
from django.utils.translation import gettext as _

from scheduling.core.calendars import CalendarError, parse_calendar
from scheduling.core.text import is_number, visible_text
from scheduling.models import Calendar
from scheduling.models.calendar import LONG
from scheduling.operations.actor import Actor
from scheduling.operations.calendar_shapes import CalendarDetail, CalendarShape, ExclusionShape
from scheduling.operations.refused import Code, Refused

VIEW = ("scheduling.view_calendar", "scheduling.change_calendar")

MOST_EXCLUSIONS = 20
AHEAD = timedelta(days=366)
"""So far ahead the next exclusions are looked for."""

_COPIED = ("id", "name", "description", "timezone", "created_at", "updated_at")


def seen(actor: Actor) -> QuerySet[Calendar]:
    """The calendars that the actor sees.

    Raises:
        Refused: FORBIDDEN.
    """
    actor.must(*VIEW)
    return actor.visible.calendars()


def find(actor: Actor, text: str) -> Calendar:
    """The calendar with this id or else this name.

    Raises:
        Refused: FORBIDDEN or NOT_FOUND, also for a calendar that the actor does not see.
    """
    rows = seen(actor).select_related("group")
    found = rows.filter(pk=int(text)).first() if is_number(text) else None
    if found is None and text.isprintable():
        found = next((row for row in rows.filter(name=text)[:2] if row.name == text), None)  # MariaDB ignores case
    if found is None:
        said = _("There is no calendar “%(name)s”, or you may not see it.") % {"name": visible_text(text, 100)}
        raise Refused(Code.NOT_FOUND, said)
    return found


def calendars_in_bulk(keys: Sequence[int]) -> dict[int, CalendarShape]:
    """The shapes of these calendars, without their entries. The caller has made sure that the actor sees them."""
    rows = Calendar.objects.select_related("group").defer(*LONG).in_bulk(keys)
    return {pk: CalendarShape(**_values(row)) for pk, row in rows.items()}


def calendar_detail(row: Calendar, now: datetime | None = None) -> CalendarDetail:
    """The shape of one calendar, with its entries and what it excludes next."""
    now, problem, exclusions = now or clock.now(), "", list[ExclusionShape]()
    try:
        parsed = parse_calendar(row.entries, row.zone_name)
        exclusions = [
            ExclusionShape(
                start=one.start.astimezone(UTC), until=None if one.until is None else one.until.astimezone(UTC),
                reasons=list(one.reasons),
            )
            for one in islice(parsed.exclusions(now, now + AHEAD), MOST_EXCLUSIONS)
        ]  # fmt: skip
    except CalendarError as error:
        problem = visible_text(error, 500)
    return CalendarDetail(**{**_values(row), "problem": problem}, entries=row.entries, exclusions=exclusions)


def version(row: Calendar) -> str:
    """A text that changes with each value that a client may give. The entries are not read for it."""
    values = [row.pk, row.name, row.description, row.timezone, row.group_id, row.version]
    return salted_hmac("scheduling.calendar.version", json.dumps(values), algorithm="sha256").hexdigest()[:32]


def _values(row: Calendar) -> dict[str, Any]:
    group = None if row.group is None else row.group.name
    return {name: getattr(row, name) for name in _COPIED} | {
        "group": group,
        "problem": row.error,
        "version": version(row),
    }
