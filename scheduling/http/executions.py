"""`/executions`: what has run, runs and waits."""

from __future__ import annotations

from typing import Annotated

from django.http import FileResponse, HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from ninja import Body, Query, Router

from scheduling.core.lifecycle import OPEN_STATES
from scheduling.http.answers import answer, listing, started
from scheduling.http.auth import caller_of
from scheduling.http.once import Asked, in_one
from scheduling.http.parameters import PROBLEMS, Id, Page
from scheduling.http.schemas import CancelShape, Listing, OutputGroup, OutputShape, RunBody, StartedShape
from scheduling.operations import artefacts, executions
from scheduling.operations.execution_shapes import ExecutionDetail, ExecutionShape
from scheduling.operations.output import Cursor, after
from scheduling.operations.refused import Code, Refused
from scheduling.operations.run_filter import RunFilter, run_keys
from scheduling.operations.shaping import execution_detail, executions_in_bulk

router = Router(tags=["executions"])


@router.get("", response={200: Listing[ExecutionShape], **PROBLEMS}, summary="List executions")
def list_executions(request: HttpRequest, page: Page, wanted: Annotated[RunFilter, Query()]) -> HttpResponse:
    """The executions that you see, the newest first."""
    caller = caller_of(request)
    keys, following, is_cut = run_keys(caller, wanted, page.after, page.limit)
    return listing(keys, following, lambda some: executions_in_bulk(caller, some), is_cut)


@router.get(
    "/{execution_id}", response={200: ExecutionDetail, **PROBLEMS}, url_name="execution", summary="One execution"
)
def read_execution(request: HttpRequest, execution_id: Id) -> HttpResponse:
    """With its params, result, attempts and files."""
    caller = caller_of(request)
    return answer(execution_detail(caller, executions.by_id(caller, execution_id)))


@router.get("/{execution_id}/output", response={200: OutputShape, **PROBLEMS}, summary="The output of an execution")
def read_output(
    request: HttpRequest, execution_id: Id,
    after_cursor: Annotated[str, Query(alias="after", max_length=40, pattern=r"^(\d{1,9}\.\d{1,9}\.\d{1,9})?$")] = "",
) -> HttpResponse:  # fmt: skip
    """From the cursor on. To follow a run, ask again with `cursor` until `is_over` is true and `more` is false."""
    # The state is read first: what a run has written before its end is then in the output.
    rows = executions.seen(caller_of(request)).filter(pk=execution_id).values_list("state", "attempt")
    state, newest = next(iter(rows), ("", 0))
    if not state:
        executions.by_id(caller_of(request), execution_id)
    found = after(execution_id, Cursor.of(after_cursor), newest=newest)
    return answer(
        OutputShape(
            groups=[OutputGroup(attempt=attempt, lines=lines) for attempt, lines in found.groups],
            cursor=str(found.cursor),
            more=found.cut,
            state=state,
            is_over=state not in {str(one) for one in OPEN_STATES},
        )
    )


@router.get("/{execution_id}/artefacts/{artefact_id}", response={200: bytes, **PROBLEMS}, summary="Download a file")
def download_artefact(request: HttpRequest, execution_id: Id, artefact_id: Id) -> FileResponse:
    """The bytes of a file that the execution made."""
    rows = artefacts.seen(caller_of(request)).filter(execution=execution_id)
    found = rows.select_related("execution").filter(pk=artefact_id).first()
    if found is None:
        raise Refused(Code.NOT_FOUND, _("There is no such file, or you may not see it."))
    return artefacts.download(found)


@router.post("/{execution_id}/cancel", response={202: CancelShape, **PROBLEMS}, summary="Cancel an execution")
def cancel_execution(request: HttpRequest, execution_id: Id) -> HttpResponse:
    """One that waits is cancelled at once. The process of one that runs is asked to end, and killed after 5 s."""

    def work(_asked: Asked) -> HttpResponse:
        result = executions.cancel(caller_of(request), execution_id)
        return answer(CancelShape(id=execution_id, result=result), 202)

    return in_one(request, (executions.CANCEL,), work)


@router.post("/{execution_id}/rerun", response={202: StartedShape, **PROBLEMS}, summary="Run an execution again")
def rerun_execution(
    request: HttpRequest, execution_id: Id, body: Annotated[RunBody, Body(default_factory=RunBody)]
) -> HttpResponse:
    """Its schedule runs once more, now, with the params of the execution or with others."""
    caller = caller_of(request)

    def work(asked: Asked) -> HttpResponse:
        return started(executions.rerun(caller, execution_id, body.params, asked.key))

    return in_one(request, (executions.RERUN,), work)
