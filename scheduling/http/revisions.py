"""`/schedulers/{id}/revisions`: what has changed a schedule, and how to take a change back."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated

from django.http import HttpRequest, HttpResponse
from ninja import Body, Path, Router

from scheduling.http.answers import answer, etag, listing
from scheduling.http.auth import caller_of
from scheduling.http.once import Asked, in_one
from scheduling.http.parameters import PROBLEMS, Id, Page
from scheduling.http.schemas import Listing, ReasonBody
from scheduling.operations import revisions, schedules
from scheduling.operations.actor import Actor
from scheduling.operations.revision_shapes import RevisionShape, revisions_in_bulk
from scheduling.operations.shapes import ScheduleShape
from scheduling.operations.shaping import page_keys, schedule_shape

router = Router(tags=["schedulers"])

Number = Annotated[int, Path(ge=1, le=2**31 - 1)]


@router.get("/{scheduler_id}/revisions", response={200: Listing[RevisionShape], **PROBLEMS}, summary="List revisions")
def list_revisions(request: HttpRequest, scheduler_id: Id, page: Page) -> HttpResponse:
    """Each change of the schedule, the newest first. Those of a deleted schedule stay for a while."""
    caller = caller_of(request)
    rows = revisions.revisions_of(caller, scheduler_id)
    keys, following = page_keys(rows, page.after, page.limit, descending=True)
    return listing(keys, following, partial(revisions_in_bulk, caller, scheduler_id))


@router.post(
    "/{scheduler_id}/revisions/{number}/undo", response={200: ScheduleShape, **PROBLEMS}, summary="Undo a revision"
)
def undo_revision(
    request: HttpRequest,
    scheduler_id: Id,
    number: Number,
    body: Annotated[ReasonBody, Body(default_factory=ReasonBody)],
) -> HttpResponse:
    """The values that it has changed get their former values again, as a new revision. A secret keeps its value."""
    return _reverse(request, revisions.undo_of, scheduler_id, number, body.reason)


@router.post(
    "/{scheduler_id}/revisions/{number}/restore", response={200: ScheduleShape, **PROBLEMS}, summary="Restore a state"
)
def restore_revision(
    request: HttpRequest,
    scheduler_id: Id,
    number: Number,
    body: Annotated[ReasonBody, Body(default_factory=ReasonBody)],
) -> HttpResponse:
    """The schedule becomes as the revision has left it, as a new revision. Its name and its secrets stay."""
    return _reverse(request, revisions.restore_of, scheduler_id, number, body.reason)


def _reverse(
    request: HttpRequest, edit_of: Callable[[Actor, int, int], revisions.Reversal], pk: int, number: int, reason: str
) -> HttpResponse:
    def work(_asked: Asked) -> HttpResponse:
        caller = caller_of(request)
        revisions.reverse(caller, edit_of(caller, pk, number), reason)
        return _shaped(request, pk)

    return in_one(request, (schedules.CHANGE,), work)


def _shaped(request: HttpRequest, pk: int) -> HttpResponse:
    shape = schedule_shape(caller_of(request), pk)
    return answer(shape, headers={"ETag": etag(shape.version)})
