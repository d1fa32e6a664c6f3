"""Writes instants and durations as HTML for operators.

An instant that belongs to a schedule or to one of its runs is written in the zone of the schedule, and its title gives
the time of the viewer (the site's zone). Every other instant is written in the viewer's zone. The zone is always named.
"""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo

from django.utils.html import format_html
from django.utils.safestring import SafeString

from scheduling.models.time_words import format_duration as format_duration
from scheduling.operations.times import EMPTY as EMPTY
from scheduling.operations.times import due_words as due_words
from scheduling.operations.times import duration_between as duration_between
from scheduling.operations.times import format_due as format_due
from scheduling.operations.times import format_instant as format_instant
from scheduling.operations.times import format_minute as format_minute
from scheduling.operations.times import relative_time as relative_time
from scheduling.operations.times import times_in as times_in
from scheduling.operations.times import viewers_zone


def time_tag(instant: datetime | None, zone: tzinfo | None = None) -> str:
    """A `<time>` element with the text of `format_instant`.

    The element's title is the same instant on the viewer's clock or, if this is what the text says, in UTC.
    """
    if instant is None:
        return EMPTY
    iso = instant.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    said, others = format_instant(instant, zone), (format_instant(instant, other) for other in (viewers_zone(), UTC))
    title = next((other for other in others if other != said), iso)
    return format_html('<time class="sch-time" datetime="{}" title="{}">{}</time>', iso, title, said)


def broken_after_date(text: str) -> SafeString:
    """An instant with its weekday, such as `Thu 2026-03-10 12:00 UTC`. A narrow table breaks it only after the date."""
    day, date, rest = (*text.split(" ", 2), "", "")[:3]
    return format_html('<span class="sch-whole">{} {}</span> <span class="sch-whole">{}</span>', day, date, rest)


def time_with_relative(instant: datetime | None, now: datetime | None = None, zone: tzinfo | None = None) -> str:
    """The instant as `time_tag` writes it, and on the next line the time relative to now."""
    if instant is None:
        return EMPTY
    return format_html(
        '{}<span class="sch-quiet sch-below">{}</span>', time_tag(instant, zone), relative_time(instant, now)
    )


def relative_time_tag(instant: datetime | None, now: datetime | None = None, zone: tzinfo | None = None) -> str:
    """An element with only the relative time. The element's title is the instant."""
    if instant is None:
        return EMPTY
    return format_html('<span title="{}">{}</span>', format_instant(instant, zone), relative_time(instant, now))
