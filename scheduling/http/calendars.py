"""`/calendars`: the times at which schedules do not run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from ninja import Router

from scheduling.http.answers import answer, etag, listing
from scheduling.http.auth import caller_of
from scheduling.http.once import Asked, in_one
from scheduling.http.parameters import PROBLEMS, Id, IfMatch, Page, expected_version
from scheduling.http.schemas import Listing
from scheduling.models import Calendar
from scheduling.operations import calendar_changes, calendars
from scheduling.operations.calendar_changes import CalendarValues
from scheduling.operations.calendar_shapes import CalendarDetail, CalendarShape
from scheduling.operations.refused import Code, Refused
from scheduling.operations.shaping import page_keys

router = Router(tags=["calendars"])


@router.get("", response={200: Listing[CalendarShape], **PROBLEMS}, summary="List calendars")
def list_calendars(request: HttpRequest, page: Page) -> HttpResponse:
    """The calendars that you see, in the order of their ids, without their entries."""
    keys, following = page_keys(calendars.seen(caller_of(request)), page.after, page.limit, descending=False)
    return listing(keys, following, calendars.calendars_in_bulk)


@router.post("", response={201: CalendarDetail, **PROBLEMS}, summary="Make a calendar")
def make_calendar(request: HttpRequest, values: CalendarValues) -> HttpResponse:
    """Schedules name it by its name."""
    caller = caller_of(request)

    def work(_asked: Asked) -> HttpResponse:
        row = calendar_changes.make(caller, values.given())
        return _shaped(row, 201, {"Location": reverse("cron_api:calendar", args=[row.pk])})

    return in_one(request, (calendar_changes.ADD,), work)


@router.get("/{calendar_id}", response={200: CalendarDetail, **PROBLEMS}, url_name="calendar", summary="One calendar")
def get_calendar(request: HttpRequest, calendar_id: Id) -> HttpResponse:
    """With its entries, and what it excludes next. The header ETag has its version."""
    return _shaped(calendars.find(caller_of(request), str(calendar_id)))


@router.patch("/{calendar_id}", response={200: CalendarDetail, **PROBLEMS}, summary="Change a calendar")
def change_calendar(
    request: HttpRequest, calendar_id: Id, values: CalendarValues, if_match: IfMatch = None
) -> HttpResponse:
    """What the body leaves out stays as it is. With If-Match, a calendar that has changed since is left alone.

    The producers plan the schedules that name it anew.
    """
    caller, expected = caller_of(request), expected_version(if_match)
    with _both_versions():
        return _shaped(calendar_changes.change(caller, calendar_id, values.given(), expected))


@router.delete("/{calendar_id}", response={204: None, **PROBLEMS}, summary="Delete a calendar")
def delete_calendar(request: HttpRequest, calendar_id: Id, if_match: IfMatch = None) -> HttpResponse:
    """One that a schedule names is not deleted."""
    caller, expected = caller_of(request), expected_version(if_match)
    with _both_versions():
        calendar_changes.delete(caller, calendar_id, expected)
    return HttpResponse(status=204)


def _shaped(row: Calendar, status: int = 200, headers: dict[str, str] | None = None) -> HttpResponse:
    shape = calendars.calendar_detail(row)
    return answer(shape, status, {"ETag": etag(shape.version), **(headers or {})})


@contextmanager
def _both_versions() -> Iterator[None]:
    """Tell a client whose If-Match is too old which version it has named, and which one the calendar has now."""
    try:
        yield
    except Refused as refused:
        if refused.code == Code.CHANGED:
            shape = calendars.calendar_detail(refused.extra["row"])
            refused.extra = {
                "if_match": etag(refused.extra["expected"]),
                "etag": etag(shape.version),
                "current": shape.model_dump(mode="json"),
                "headers": {"ETag": etag(shape.version)},
            }
        raise
