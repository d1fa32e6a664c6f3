"""`/failed`: the inbox of executions that failed permanently."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router

from scheduling.http.answers import answer, listing
from scheduling.http.auth import caller_of
from scheduling.http.once import Asked, in_parts, without_storing
from scheduling.http.parameters import PROBLEMS, Page
from scheduling.http.schemas import DiscardBody, FailureQuery, Listing, RepublishBody
from scheduling.operations import failures
from scheduling.operations.execution_shapes import ExecutionShape
from scheduling.operations.failure_groups import groups_shape
from scheduling.operations.failure_selection import Selection, chosen
from scheduling.operations.failure_shapes import DoneShape, GroupsShape
from scheduling.operations.shaping import executions_in_bulk, page_keys

router = Router(tags=["failed"])

Wanted = Annotated[FailureQuery, Query()]


@router.get("", response={200: Listing[ExecutionShape], **PROBLEMS}, summary="List failures")
def list_failures(request: HttpRequest, page: Page, wanted: Wanted) -> HttpResponse:
    """The failures that you see, the newest first."""
    caller = caller_of(request)
    rows = chosen(failures.seen(caller), wanted.selection)
    keys, following = page_keys(rows, page.after, page.limit, descending=True)
    return listing(keys, following, lambda some: executions_in_bulk(caller, some))


@router.get("/groups", response={200: GroupsShape, **PROBLEMS}, summary="List error groups")
def list_groups(request: HttpRequest, wanted: Wanted) -> HttpResponse:
    """Failures with the same error, the largest group first."""
    return answer(groups_shape(caller_of(request), wanted.selection))


@router.post("/republish", response={200: DoneShape, **PROBLEMS}, summary="Republish failures")
def republish_failures(request: HttpRequest, body: RepublishBody) -> HttpResponse:
    """Run them again. Their number of retries starts at zero again.

    A large selection may take several requests: send it again with the same `count` and `failed_before` and a new key,
    until `left` is zero. The spread over `minutes` then goes on.
    """
    caller = caller_of(request)

    def work(asked: Asked) -> HttpResponse:
        done = failures.republish(
            caller, _chosen(body, asked), dry_run=body.dry_run, minutes=body.minutes, canary=body.canary, key=asked.key
        )
        return answer(DoneShape(dry_run=body.dry_run, **asdict(done)))

    return without_storing(request, work) if body.dry_run else in_parts(request, (failures.REPUBLISH,), work)


@router.post("/discard", response={200: DoneShape, **PROBLEMS}, summary="Discard failures")
def discard_failures(request: HttpRequest, body: DiscardBody) -> HttpResponse:
    """They leave the inbox and do not run again. Their rows stay, with the reason."""
    caller = caller_of(request)

    def work(asked: Asked) -> HttpResponse:
        done = failures.discard(caller, _chosen(body, asked), body.reason, dry_run=body.dry_run)
        return answer(DoneShape(dry_run=body.dry_run, **asdict(done)))

    return without_storing(request, work) if body.dry_run else in_parts(request, (failures.DISCARD,), work)


def _chosen(body: Selection, asked: Asked) -> Selection:
    """The selection. A request that goes on after one that died leaves out what has failed since."""
    wanted = Selection.model_validate(body.model_dump(include=set(Selection.model_fields)))
    if asked.first_at is None:
        return wanted
    before = min(wanted.failed_before or asked.first_at, asked.first_at)
    return wanted.model_copy(update={"failed_before": before})
