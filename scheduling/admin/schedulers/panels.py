"""Functions that the panels on a schedule's page share. They give the next runs, tables and error messages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from scheduling.admin.ui.badges import icon
from scheduling.core.cron import CronError, ZoneError, next_after, parse
from scheduling.models import Scheduler

NEXT_RUNS = 10


def upcoming_runs(scheduler: Scheduler, now: datetime, count: int = NEXT_RUNS) -> list[datetime]:
    """The next occurrences in UTC, at most `count`.

    Raises:
        CronError, ZoneError: the schedule or its zone is invalid. The message is a sentence for the user.
    """
    if scheduler.date_time is not None:
        return [scheduler.date_time] if scheduler.date_time > now else []
    cron, found = parse(scheduler.schedule), list[datetime]()
    for _number in range(count):
        try:
            found.append(next_after(cron, scheduler.zone_name, found[-1] if found else now))
        except CronError:
            break  # the schedule has no further occurrence
    return found


def refused(error: object) -> SafeString:
    """A panel that contains only an error message, and for a mistyped zone a button that writes the nearest zone.

    A script shows the button. Without it, the message names the zone.
    """
    said, nearest = str(error), error.nearest if isinstance(error, ZoneError) else ""
    button = '<button type="button" class="sch-preset" data-live-fill="timezone" value="{}" hidden>{}</button>'
    return format_html(
        '<div class="sch-panel" data-live-said="{}"><p class="sch-note sch-note-bad">{} {} {}</p></div>',
        said,
        icon("warn"),
        said,
        format_html(button, nearest, _("Use %(zone)s") % {"zone": nearest}) if nearest else "",
    )


def table(caption: object, head: list[Any], row: str, rows: Iterable[Sequence[object]]) -> SafeString:
    """A small table as HTML. `row` is the HTML of one line, with a `{}` for each value of the line."""
    return format_html(
        '<div class="sch-scroll"><table class="sch-table"><caption class="sch-hidden">{}</caption>'
        "<thead><tr>{}</tr></thead><tbody>{}</tbody></table></div>",
        caption,
        format_html_join("", '<th scope="col">{}</th>', ((word,) for word in head)),
        format_html_join("", row, rows),
    )
