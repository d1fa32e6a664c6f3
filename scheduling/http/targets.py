"""`/reports/generate` and `/handlers`: what can run, and one run without a schedule."""

from __future__ import annotations

from functools import lru_cache
from threading import BoundedSemaphore
from typing import Annotated, Any

from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from ninja import Body, Path, Router
from pydantic import BaseModel

from scheduling.conf import get_conf
from scheduling.execution.run_status import UnknownRun, wait
from scheduling.handlers import Handler, handlers
from scheduling.http.answers import answer, started
from scheduling.http.auth import Caller, caller_of
from scheduling.http.once import REPLAYED, Asked, in_one
from scheduling.http.parameters import PROBLEMS
from scheduling.http.schemas import GenerateReport, HandlerList, HandlerShape, StartedShape, TargetRunBody
from scheduling.operations import executions
from scheduling.operations.execution_shapes import ExecutionDetail
from scheduling.operations.refused import Refused
from scheduling.operations.run_target import may_see, run_target
from scheduling.operations.schedule_state import RUN
from scheduling.operations.shaping import execution_detail
from scheduling.operations.target_type import TargetType

router = Router(tags=["targets"])

MOST_WAITING = 2
"""So many requests of one web process wait for a report at a time. Further ones are answered at once."""
_waiting = BoundedSemaphore(MOST_WAITING)

Type = Annotated[TargetType, Path()]
Name = Annotated[str, Path(min_length=1, max_length=200)]


@router.post(
    "/reports/generate",
    response={200: ExecutionDetail, 202: StartedShape, **PROBLEMS},
    summary="Make a report now",
)
def generate_report(request: HttpRequest, body: GenerateReport) -> HttpResponse:
    """With `options_interface.delivery.instant: true`, the answer comes when the report is done, with its state.

    If this takes too long, and without `instant`, the answer is 202 with the address of the execution.
    """
    caller = caller_of(request)
    if (body.controller is None) == (body.report_id is None):
        raise Refused.value("controller", _("Name one report, by its controller or by its id."))
    params = dict(body.params)
    if body.options_interface is not None:
        params["options_interface"] = body.options_interface.model_dump(exclude_unset=True)
    report = body.controller if body.controller is not None else body.report_id

    def work(asked: Asked) -> HttpResponse:
        return started(run_target(caller, "report", report or 0, params, asked.key))

    response = in_one(request, (RUN,), work)
    return (_finished(caller, response) if body.instant else None) or response


def _finished(caller: Caller, response: HttpResponse) -> HttpResponse | None:
    """The answer with the result; None if the run is not over within the limit, or too many requests wait."""
    if connection.in_atomic_block or not caller.has_perm(executions.VIEW):
        return None  # the run is not committed yet, or the caller may not see its result
    pk = int(response.headers["Location"].rstrip("/").rpartition("/")[2])
    if not _waiting.acquire(blocking=False):
        return None
    try:
        wait(pk, get_conf().api_instant_seconds)
    except (TimeoutError, UnknownRun):
        return None
    finally:
        _waiting.release()
    again = {REPLAYED: "true"} if REPLAYED in response.headers else {}
    return answer(execution_detail(caller, executions.by_id(caller, pk)), headers=again)


@router.get("/handlers", response={200: HandlerList, **PROBLEMS}, summary="List handlers")
def list_handlers(request: HttpRequest) -> HttpResponse:
    """The workers, reports and the reminder that this web process knows, with the JSON schema of their params."""
    caller = caller_of(request)
    return answer(HandlerList(items=[_handler(one) for one in handlers() if may_see(caller, one.type)]))


def _handler(handler: Handler) -> HandlerShape:
    return HandlerShape(
        type=handler.type,
        name=handler.name,
        title=handler.title,
        description=handler.description,
        queue=handler.queue,
        permission=handler.permission,
        params_schema=_schema_of(handler.params),
    )


@lru_cache(maxsize=1_000)
def _schema_of(params: type[BaseModel]) -> dict[str, Any]:
    """The JSON schema of a params model. To make it takes as long as all the rest of the answer."""
    return params.model_json_schema()


@router.post("/targets/{type}/{name}/run", response={202: StartedShape, **PROBLEMS}, summary="Run a target once")
def run_once(
    request: HttpRequest, type: Type, name: Name, body: Annotated[TargetRunBody, Body(default_factory=TargetRunBody)]
) -> HttpResponse:
    """A worker, report or reminder runs now, without a schedule. It is named by its name or by its id."""
    caller = caller_of(request)

    def work(asked: Asked) -> HttpResponse:
        return started(run_target(caller, type, name, body.params, asked.key))

    return in_one(request, (RUN,), work)
