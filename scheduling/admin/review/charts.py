"""Charts of the review: one bar for each day."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from django.utils.formats import date_format, number_format
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from scheduling.admin.ui import svg
from scheduling.core.review import Review
from scheduling.operations.review_tables import percent

WIDTH, HEIGHT, TOP, BELOW = 560, 90, 16, 18
WIDEST, GAP = 64, 0.25
MOST_LABELS = 8


class Chart(NamedTuple):
    """A chart and its heading. `picture` is empty if there is nothing to show."""

    title: str
    picture: SafeString | str
    empty: str


class _Bar(NamedTuple):
    value: float
    words: str


def charts(review: Review) -> list[Chart]:
    """The failures, the retries and the skipped occurrences of each day."""
    days = [(date_format(day, "D j M"), totals) for day, totals in review.by_day]
    short = "D j" if len(days) <= MOST_LABELS else "j M"
    names = [date_format(day, short) for day, _totals in review.by_day]
    failures = [
        _Bar(totals.failures, ngettext("%(day)s: %(count)s of %(runs)s run failed for good",
             "%(day)s: %(count)s of %(runs)s runs failed for good", totals.runs)
             % {"day": day, "count": _number(totals.failures), "runs": _number(totals.runs)})
        for day, totals in days
    ]  # fmt: skip
    retries = [
        _Bar(totals.retries, ngettext("%(day)s: %(count)s retry, %(share)s of all attempts",
             "%(day)s: %(count)s retries, %(share)s of all attempts", totals.retries)
             % {"day": day, "count": _number(totals.retries), "share": percent(totals.retry_share)})
        for day, totals in days
    ]  # fmt: skip
    return [
        Chart(_("Failed for good, by day"), _drawn(names, failures, _("Runs that failed for good, by day"), "failed"),
              _("Nothing failed.")),
        Chart(_("Retries, by day"), _drawn(names, retries, _("Retries, by day"), "retried"),
              _("Nothing was retried.")),
    ]  # fmt: skip


def _drawn(names: Sequence[str], bars: Sequence[_Bar], label: str, css: str) -> SafeString | str:
    top = max(bar.value for bar in bars)
    if top <= 0:
        return ""
    step = min(WIDTH / len(bars), WIDEST)
    every = -(-len(bars) // MOST_LABELS)
    shapes: list[SafeString] = []
    heights = svg.bars([bar.value for bar in bars], HEIGHT)
    for place, (name, bar, tall) in enumerate(zip(names, bars, heights, strict=True)):
        height = tall if bar.value else 1
        x, width = round(place * step + step * GAP / 2, 1), round(step * (1 - GAP), 1)
        shapes.append(
            svg.rect(x, TOP + HEIGHT - height, width, height, f"sch-day-{css if bar.value else 'none'}", bar.words)
        )
        if place % every == 0:
            shapes.append(svg.text(round(x + width / 2, 1), TOP + HEIGHT + 14, name, anchor="middle"))
        if bar.value and (bar.value == top or len(bars) <= MOST_LABELS):
            shapes.append(
                svg.text(round(x + width / 2, 1), TOP + HEIGHT - height - 4, _number(bar.value), anchor="middle")
            )
    return svg.picture(max(round(step * len(bars)), 1), TOP + HEIGHT + BELOW, label, shapes, css="sch-days")


def _number(number: float) -> str:
    return number_format(int(number), force_grouping=True)
