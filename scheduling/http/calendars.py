"""`/calendars`: the times at which schedules do not run."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from ninja import Router

from scheduling.http.answers import answer, listing
from scheduling.http.auth import caller_of
from scheduling.http.parameters import PROBLEMS, Id, Page
from scheduling.http.schemas import Listing
from scheduling.operations import calendars
from scheduling.operations.shapes import CalendarDetail, CalendarShape
from scheduling.operations.shaping import page_keys

router = Router(tags=["calendars"])


@router.get("", response={200: Listing[CalendarShape], **PROBLEMS}, summary="List calendars")
def list_calendars(request: HttpRequest, page: Page) -> HttpResponse:
    """The calendars that you see, in the order of their ids, without their entries."""
    keys, following = page_keys(calendars.seen(caller_of(request)), page.after, page.limit, descending=False)
    return listing(keys, following, calendars.calendars_in_bulk)


@router.get("/{calendar_id}", response={200: CalendarDetail, **PROBLEMS}, summary="One calendar")
def get_calendar(request: HttpRequest, calendar_id: Id) -> HttpResponse:
    """With its entries, and what it excludes next."""
    return answer(calendars.calendar_detail(calendars.find(caller_of(request), str(calendar_id))))
