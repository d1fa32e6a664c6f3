"""Functions that the panels on a schedule's page share. They give tables and error messages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from scheduling.admin.ui.badges import icon
from scheduling.core.cron import ZoneError


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
