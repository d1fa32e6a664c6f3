"""`/schedulers`: what runs, and when."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone as clock
from ninja import Body, Query, Router

from scheduling.http.answers import answer, etag, listing, started
from scheduling.http.auth import Caller, caller_of
from scheduling.http.once import Asked, in_one, without_storing
from scheduling.http.parameters import PROBLEMS, Id, IfMatch, Page, expected_version
from scheduling.http.schemas import Listing, PauseBody, ScheduleRunBody, StartedShape, WhyAnswers
from scheduling.operations import schedule_state, schedules
from scheduling.operations.next_run_shapes import NextRunsShape, PreviewShape
from scheduling.operations.next_runs import next_runs_shape
from scheduling.operations.refused import Code, Refused
from scheduling.operations.schedule_filter import ScheduleFilter, filtered_schedules
from scheduling.operations.schedule_values import ScheduleValues
from scheduling.operations.shapes import ScheduleShape
from scheduling.operations.shaping import page_keys, schedule_shape, schedules_in_bulk
from scheduling.operations.time_machine import preview
from scheduling.operations.why import why

router = Router(tags=["schedulers"])

Reason = Annotated[str, Query(max_length=500, description="Why it is changed. The revision keeps it.")]


@router.get("", response={200: Listing[ScheduleShape], **PROBLEMS}, summary="List schedules")
def list_schedulers(request: HttpRequest, page: Page, wanted: Annotated[ScheduleFilter, Query()]) -> HttpResponse:
    """The schedules that you see, in the order of their ids."""
    caller = caller_of(request)
    rows = filtered_schedules(caller, wanted)
    keys, following = page_keys(rows, page.after, page.limit, descending=False)
    return listing(keys, following, lambda some: schedules_in_bulk(caller, some))


@router.post("", response={201: ScheduleShape, **PROBLEMS}, summary="Make a schedule")
def make_scheduler(request: HttpRequest, values: ScheduleValues, reason: Reason = "") -> HttpResponse:
    """It belongs to you, unless `user` names another user."""
    caller = caller_of(request)

    def work(_asked: Asked) -> HttpResponse:
        row = schedules.make(caller, values.given(), reason=reason)
        shape = schedule_shape(caller, row.pk)
        headers = {"Location": reverse("cron_api:scheduler", args=[row.pk]), "ETag": etag(shape.version)}
        return answer(shape, 201, headers)

    return in_one(request, (schedules.ADD,), work)


@router.post("/preview", response={200: PreviewShape, **PROBLEMS}, summary="What a new schedule would do")
def preview_new_scheduler(request: HttpRequest, values: ScheduleValues) -> HttpResponse:
    """The next 20 runs, and the load of the next 24 hours with and without it. Nothing is stored."""
    caller = caller_of(request)
    return without_storing(request, lambda _asked: answer(preview(caller, None, values.given(), clock.now())))


@router.get("/{scheduler_id}", response={200: ScheduleShape, **PROBLEMS}, url_name="scheduler", summary="One schedule")
def read_scheduler(request: HttpRequest, scheduler_id: Id) -> HttpResponse:
    """The header ETag has its version."""
    caller = caller_of(request)
    row = schedules.by_id(caller, scheduler_id)
    return _shaped(request, row.pk)


@router.patch("/{scheduler_id}", response={200: ScheduleShape, **PROBLEMS}, summary="Change a schedule")
def change_scheduler(
    request: HttpRequest, scheduler_id: Id, values: ScheduleValues, if_match: IfMatch = None, reason: Reason = ""
) -> HttpResponse:
    """What the body leaves out stays as it is. With If-Match, a schedule that has changed since is left alone."""
    caller, expected = caller_of(request), expected_version(if_match)
    with _both_versions(caller):
        schedules.change(caller, scheduler_id, values.given(), expected, reason=reason)
    return _shaped(request, scheduler_id)


@router.delete("/{scheduler_id}", response={204: None, **PROBLEMS}, summary="Delete a schedule")
def delete_scheduler(
    request: HttpRequest, scheduler_id: Id, if_match: IfMatch = None, reason: Reason = ""
) -> HttpResponse:
    """Its runs stay."""
    caller, expected = caller_of(request), expected_version(if_match)
    with _both_versions(caller):
        schedules.delete(caller, scheduler_id, expected, reason=reason)
    return HttpResponse(status=204)


@router.post("/{scheduler_id}/pause", response={200: ScheduleShape, **PROBLEMS}, summary="Pause a schedule")
def pause_scheduler(
    request: HttpRequest, scheduler_id: Id, body: Annotated[PauseBody, Body(default_factory=PauseBody)]
) -> HttpResponse:
    """It does not run at its times until it is resumed. If it is paused already, nothing changes."""

    def work(_asked: Asked) -> HttpResponse:
        schedule_state.set_active(caller_of(request), scheduler_id, False, body.reason)
        return _shaped(request, scheduler_id)

    return in_one(request, schedule_state.PAUSE, work)


@router.post("/{scheduler_id}/resume", response={200: ScheduleShape, **PROBLEMS}, summary="Resume a schedule")
def resume_scheduler(request: HttpRequest, scheduler_id: Id) -> HttpResponse:
    """Occurrences that fell due during the pause do not run. If it is active already, nothing changes."""

    def work(_asked: Asked) -> HttpResponse:
        schedule_state.set_active(caller_of(request), scheduler_id, True)
        return _shaped(request, scheduler_id)

    return in_one(request, schedule_state.PAUSE, work)


@router.post("/{scheduler_id}/run", response={202: StartedShape, **PROBLEMS}, summary="Run a schedule now")
def run_scheduler(
    request: HttpRequest, scheduler_id: Id, body: Annotated[ScheduleRunBody, Body(default_factory=ScheduleRunBody)]
) -> HttpResponse:
    """Once, also if it is paused. The header Location has the address of the execution.

    If a run of the schedule is not over, the policy `overlap` decides: the new run starts, waits (state `blocked`), or
    is refused with 409.
    """
    caller = caller_of(request)

    def work(asked: Asked) -> HttpResponse:
        return started(schedule_state.run(caller, scheduler_id, body.params, asked.key, beside=body.beside))

    return in_one(request, (schedule_state.RUN,), work)


@router.get("/{scheduler_id}/next", response={200: NextRunsShape, **PROBLEMS}, summary="The next runs")
def next_of_scheduler(
    request: HttpRequest, scheduler_id: Id, count: Annotated[int, Query(ge=1, le=100)] = 10
) -> HttpResponse:
    """By its present times, also if it is paused."""
    row = schedules.by_id(caller_of(request), scheduler_id)
    return answer(next_runs_shape(row, count, clock.now()))


@router.post("/{scheduler_id}/preview", response={200: PreviewShape, **PROBLEMS}, summary="What a change would do")
def preview_scheduler(request: HttpRequest, scheduler_id: Id, values: ScheduleValues) -> HttpResponse:
    """The next 20 runs before and after, and the load of the next 24 hours with and without it. Nothing is stored.

    The body is the same as that of PATCH.
    """
    caller = caller_of(request)
    return without_storing(request, lambda _asked: answer(preview(caller, scheduler_id, values.given(), clock.now())))


@router.get("/{scheduler_id}/why", response={200: WhyAnswers, **PROBLEMS}, summary="Did it run at an instant?")
def why_of_scheduler(request: HttpRequest, scheduler_id: Id, at: Annotated[str, Query(max_length=64)]) -> HttpResponse:
    """`at` is a date and time in the schedule's zone, or one with an offset.

    A local time that the clocks repeat has two answers.
    """
    caller = caller_of(request)
    return answer(WhyAnswers(answers=why(caller, schedules.by_id(caller, scheduler_id), at, clock.now())))


def _shaped(request: HttpRequest, pk: int) -> HttpResponse:
    shape = schedule_shape(caller_of(request), pk)
    return answer(shape, headers={"ETag": etag(shape.version)})


@contextmanager
def _both_versions(caller: Caller) -> Iterator[None]:
    """Tell a client whose If-Match is too old which version it has named, and which one the schedule has now."""
    try:
        yield
    except Refused as refused:
        if refused.code == Code.CHANGED:
            shape = schedule_shape(caller, refused.extra["row"].pk)
            refused.extra = {
                "if_match": etag(refused.extra["expected"]),
                "etag": etag(shape.version),
                "current": shape.model_dump(mode="json"),
                "headers": {"ETag": etag(shape.version)},
            }
        raise
