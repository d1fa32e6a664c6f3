"""The page of the review, for any days, and its tables as a CSV file."""

from __future__ import annotations

import csv
from datetime import date
from typing import Any, NamedTuple
from urllib.parse import urlencode

from django import forms
from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern
from django.utils.translation import gettext as _

from scheduling.admin.common.pages import READ, Page
from scheduling.admin.common.read_only import ReadOnly
from scheduling.admin.common.viewer import Viewer
from scheduling.admin.review.charts import charts
from scheduling.admin.ui.links import admin_url
from scheduling.admin.ui.media import page_media
from scheduling.conf import get_conf
from scheduling.core.review_range import MOST_DAYS, NoDate, Range, RangeError, last_days, typed_range
from scheduling.core.spreadsheet import guarded_text
from scheduling.core.zones import zone
from scheduling.models import Review
from scheduling.operations.review import review_of
from scheduling.operations.review_lines import COLUMNS, review_lines
from scheduling.operations.review_tables import days_in_words, figures, notes, schedule_names, tables, verdict

FROM, TO = "from", "to"
OFFERED = (7, 30, 90)
"""The numbers of days up to today that the page offers as links."""


class _Chosen(NamedTuple):
    """The days of a request. `problem` says why they are not those that the address asks for; empty if they are."""

    days: Range
    problem: str

    @property
    def query(self) -> str:
        return _query(self.days.first, self.days.last)


@admin.register(Review)
class ReviewAdmin(ReadOnly):
    """Adds the review to the admin's sidebar, with a permission of its own. The model `Review` has no table."""

    pages = (Page("changelist", "view", "", READ), Page("download", "view", "download/", READ))

    @property
    def media(self) -> forms.Media:
        return super().media + page_media(sheets=("dashboard", "review"))

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.has_perm("scheduling.view_review")

    def get_urls(self) -> list[URLPattern]:
        """The URLs of `pages` only. Django's own admin pages would need a database table."""
        return self.page_urls()

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        viewer = Viewer.of(request)
        chosen = _chosen(request, viewer)
        review = review_of(chosen.days, viewer.visible)
        said = verdict(review)
        context = {
            "media": self.media,
            "title": _("Review"),
            "chosen": chosen,
            "zone": chosen.days.info,
            "days": days_in_words(chosen.days),
            "before": days_in_words(chosen.days.before),
            "most": MOST_DAYS,
            "offered": _offered(chosen, viewer),
            "verdict": f"{said[:1].upper()}{said[1:]}",
            "figures": figures(review),
            "charts": charts(review),
            "tables": tables(review, schedule_names(review, viewer.visible)),
            "notes": notes(review),
            "limited": viewer.visible.is_limited,
            "schedules": viewer.sees("scheduler"),
            "file": f"{admin_url('scheduling_review_download')}?{chosen.query}",
            **(extra_context or {}),
        }
        return self.page_response(request, "admin/scheduling/review/page.html", **context)

    def download_view(self, request: HttpRequest) -> HttpResponse:
        """The tables as one CSV file, with the lines of `operations.review_lines`."""
        viewer = Viewer.of(request)
        days = _chosen(request, viewer).days
        review = review_of(days, viewer.visible)
        name = f"review-{days.first.isoformat()}-{days.last.isoformat()}.csv"
        # The byte order mark tells Excel the encoding, as in the files of reports.
        response = HttpResponse("\ufeff", content_type="text/csv; charset=utf-8")
        response["Content-Disposition"] = f'attachment; filename="{name}"'
        writer = csv.writer(response, lineterminator="\r\n")
        writer.writerow(COLUMNS)
        for line in review_lines(review, schedule_names(review, viewer.visible)):
            writer.writerow([_cell(line[column]) for column in COLUMNS])
        return response


def _chosen(request: HttpRequest, viewer: Viewer) -> _Chosen:
    info = zone(get_conf().timezone)
    today = viewer.now.astimezone(info).date()
    first, last = request.GET.get(FROM, ""), request.GET.get(TO, "")
    try:
        return _Chosen(typed_range(first, last, today, info), "")
    except NoDate:
        problem = _("Write both days as 2026-03-09. These are the last days.")
    except RangeError:
        problem = _("A review is about at most %(most)s days. These are the last days.") % {"most": MOST_DAYS}
    return _Chosen(last_days(today, info), problem)


def _offered(chosen: _Chosen, viewer: Viewer) -> list[dict[str, Any]]:
    today = viewer.now.astimezone(chosen.days.info).date()
    ranges = [(number, last_days(today, chosen.days.info, number)) for number in OFFERED]
    return [
        {"number": number, "query": _query(days.first, days.last), "is_current": days == chosen.days}
        for number, days in ranges
    ]  # fmt: skip


def _query(first: date, last: date) -> str:
    return urlencode({FROM: first.isoformat(), TO: last.isoformat()})


def _cell(value: Any) -> str:
    if isinstance(value, str):
        return guarded_text(value)
    return "" if value is None else value.isoformat() if isinstance(value, date) else str(value)
