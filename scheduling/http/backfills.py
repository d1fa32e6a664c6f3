"""`/backfills`: runs that are made afterwards for the instants of a range."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone as clock
from ninja import Router

from scheduling.http.answers import answer, listing
from scheduling.http.auth import Caller, caller_of
from scheduling.http.once import Asked, in_one, without_storing
from scheduling.http.parameters import PROBLEMS, Id, Page
from scheduling.http.schemas import BackfillBody, Listing
from scheduling.models import Backfill
from scheduling.operations import backfills, schedules
from scheduling.operations.backfill_plan import plan, typed_range
from scheduling.operations.backfill_shapes import (
    BackfillPlanShape,
    BackfillShape,
    backfill_shape,
    backfills_in_bulk,
    plan_shape,
)
from scheduling.operations.shaping import page_keys

router = Router(tags=["backfills"])
of_schedule = Router(tags=["backfills"])
"""Mounted at the schedules."""


@of_schedule.post(
    "/{scheduler_id}/backfill",
    response={200: BackfillPlanShape, 202: BackfillShape, **PROBLEMS},
    summary="Backfill a schedule",
)
def backfill_scheduler(request: HttpRequest, scheduler_id: Id, body: BackfillBody) -> HttpResponse:
    """It runs once for each instant of the range that has no run. With `dry_run`, the instants are only listed.

    The same range asked again makes no run a second time.
    """
    caller = caller_of(request)

    def work(asked: Asked) -> HttpResponse:
        row, now = schedules.by_id(caller, scheduler_id), clock.now()
        options = body.options
        caller.must(backfills.BACKFILL)
        found = plan(caller, row, *typed_range(row, body.since, body.until, now), options, now)
        if body.dry_run:
            return answer(plan_shape(found))
        (made,) = backfills.start(caller, [found], options, asked.key).rows
        return answer(backfill_shape(caller, made.pk), 202, {"Location": reverse("cron_api:backfill", args=[made.pk])})

    return without_storing(request, work) if body.dry_run else in_one(request, (backfills.BACKFILL,), work)


@router.get("", response={200: Listing[BackfillShape], **PROBLEMS}, summary="List backfills")
def list_backfills(request: HttpRequest, page: Page) -> HttpResponse:
    """The backfills that you see, the newest first."""
    caller = caller_of(request)
    keys, following = page_keys(backfills.seen(caller), page.after, page.limit, descending=True)
    return listing(keys, following, lambda some: backfills_in_bulk(caller, some))


@router.get("/{backfill_id}", response={200: BackfillShape, **PROBLEMS}, url_name="backfill", summary="One backfill")
def read_backfill(request: HttpRequest, backfill_id: Id) -> HttpResponse:
    """How far it is."""
    caller = caller_of(request)
    return answer(backfill_shape(caller, backfills.by_id(caller, backfill_id).pk))


@router.post("/{backfill_id}/pause", response={200: BackfillShape, **PROBLEMS}, summary="Pause a backfill")
def pause_backfill(request: HttpRequest, backfill_id: Id) -> HttpResponse:
    """It makes no runs until it is resumed. The runs that it has made go on."""
    return _changed(request, backfill_id, backfills.pause)


@router.post("/{backfill_id}/resume", response={200: BackfillShape, **PROBLEMS}, summary="Resume a backfill")
def resume_backfill(request: HttpRequest, backfill_id: Id) -> HttpResponse:
    """It goes on where it was."""
    return _changed(request, backfill_id, backfills.resume)


@router.post("/{backfill_id}/cancel", response={200: BackfillShape, **PROBLEMS}, summary="Cancel a backfill")
def cancel_backfill(request: HttpRequest, backfill_id: Id) -> HttpResponse:
    """It makes no more runs. The runs that it has made go on."""
    return _changed(request, backfill_id, backfills.cancel)


def _changed(request: HttpRequest, pk: int, change: Callable[[Caller, int], Backfill]) -> HttpResponse:
    caller = caller_of(request)

    def work(_asked: Asked) -> HttpResponse:
        return answer(backfill_shape(caller, change(caller, pk).pk))

    return in_one(request, (backfills.BACKFILL,), work)
