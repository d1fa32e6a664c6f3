"""Each operation of the API, and the page of the admin that does the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import Group
from django.utils import timezone as clock

from reports.models import Report
from scheduling.models import Artefact, FailedExecution, Reminder, Scheduler, SchedulerExecution, Worker
from tests.admin.scheduler_form import ADD, form
from tests.admin.walk import text_of
from tests.factories import (
    FailedExecutionFactory,
    OutputFactory,
    SchedulerExecutionFactory,
    SchedulerFactory,
)
from tests.http.doors import Request, Word
from tests.reports.support import artefact_of

S = "/admin/scheduling"
E = f"{S}/schedulerexecution"
LINE = "2026-03-10T12:00:00.000Z INFO a line of the output"


@dataclass(frozen=True)
class Rows:
    """A row for each act. All of them have the same group and the same worker."""

    name: str
    group: Group | None
    schedule: Scheduler
    paused: Scheduler
    running: SchedulerExecution
    failed: FailedExecution
    succeeded: SchedulerExecution
    artefact: Artefact


def rows_of(name: str, group: Group | None, handler: str = "tests.noop") -> Rows:
    """Store the rows.

    Args:
        name: names them in a failure of the test.
        handler: the worker that they run.
    """
    own = SchedulerFactory(handler=handler, group=group)
    columns: dict[str, Any] = {"scheduler": own, "group": group}
    succeeded = SchedulerExecutionFactory(succeeded=True, **columns)
    OutputFactory(execution=succeeded, text=f"{LINE}\n")
    return Rows(
        name=name,
        group=group,
        schedule=own,
        paused=SchedulerFactory(handler=handler, group=group, off=True),
        running=SchedulerExecutionFactory(running=True, **columns),
        failed=FailedExecutionFactory(**columns),
        succeeded=succeeded,
        artefact=artefact_of(succeeded),
    )


@dataclass(frozen=True)
class Operation:
    """The requests of an operation to both doors.

    Args:
        admin: the request to the admin. The argument has the rows that the request is about.
        api: the request to the API. Its method and its address are added.
        values: the values of the address of the API, by their names.
        is_act: whether it changes something. Then its entries of the history tell whether it was carried out.
        is_of_rows: whether it is about single rows that may have a group.
    """

    admin: Callable[[Rows], Request]
    api: Callable[[Rows], Request] = lambda _rows: Request("")
    values: Callable[[Rows], Mapping[str, Any]] = lambda _rows: {}
    is_act: bool = False
    is_of_rows: bool = True


def _schedule(rows: Rows) -> dict[str, Any]:
    return {"scheduler_id": rows.schedule.pk}


def _act(page: str, body: Any = None, at: str = "scheduler", of: str = "schedule") -> Callable[[Rows], Request]:
    """A POST to a page of a row."""
    return lambda rows: Request(f"{S}/{at}/{getattr(rows, of).pk}/{page}/", {} if body is None else body)


def _page(page: str = "change", at: str = "scheduler", of: str = "schedule") -> Callable[[Rows], Request]:
    return lambda rows: Request(f"{S}/{at}/{getattr(rows, of).pk}/{page}/")


def _execution(of: str) -> Callable[[Rows], Mapping[str, Any]]:
    return lambda rows: {"execution_id": getattr(rows, of).pk}


def _listed(response: Any) -> frozenset[int]:
    """The keys that a list of the admin shows."""
    return frozenset(row.pk for row in response.context["cl"].result_list)


def _items(response: Any) -> frozenset[int]:
    """The keys that a list of the API has."""
    assert response.json()["unusable"] == []
    return frozenset(row["id"] for row in response.json()["items"])


def _list(address: str) -> Operation:
    return Operation(
        lambda _rows: Request(address, read=_listed), lambda _rows: Request("", read=_items), is_of_rows=False
    )


def _moved(response: Any) -> Any:
    """What an act on one failure did. If nothing matches, the list of ids says no more."""
    done = response.json()
    if not done["matching"]:
        return Word.REFUSED if done["left_out"] else Word.MISSING
    return None


def _failure(verb: str, **values: Any) -> Operation:
    return Operation(
        lambda rows: Request(
            f"{S}/failedexecution/{rows.failed.pk}/{verb}/", {"attempt": rows.failed.attempt, **values}
        ),
        lambda rows: Request("", {"ids": [rows.failed.pk], **values}, _moved),
        is_act=True,
    )


REPORT = "tests.tokens"


def _target_of(type_: str, rows: Rows) -> Any:
    if type_ == "worker":
        return rows.schedule.target
    return Report.objects.get(controller=REPORT) if type_ == "report" else Reminder.objects.latest("pk")


def _run_once(type_: str) -> Operation:
    app = "cron_reports" if type_ == "report" else "scheduling"
    return Operation(
        lambda rows: Request(f"/admin/{app}/{type_}/{_target_of(type_, rows).pk}/run/", {}),
        values=lambda rows: {"type": type_, "name": _target_of(type_, rows).pk},
        is_act=True,
        is_of_rows=False,
    )


def _generate(**body: Any) -> Operation:
    return Operation(_run_once("report").admin, lambda _rows: Request("", body), is_act=True, is_of_rows=False)


def _handlers(type_: str) -> Operation:
    """The API leaves out the types whose list the admin refuses."""
    app = "cron_reports" if type_ == "report" else "scheduling"

    def read(response: Any) -> Word | None:
        return None if type_ in {one["type"] for one in response.json()["items"]} else Word.REFUSED

    return Operation(
        lambda _rows: Request(f"/admin/{app}/{type_}/"), lambda _rows: Request("", read=read), is_of_rows=False
    )


def _add(rows: Rows) -> Request:
    return Request(
        ADD, form(worker=Worker.objects.get(name="tests.noop").pk, group=rows.group.pk if rows.group else "")
    )


def _group_name(rows: Rows) -> str | None:
    return rows.group.name if rows.group is not None else None


def _edit(rows: Rows) -> Request:
    row = rows.schedule
    values = form(worker=row.target_id, group=row.group_id or "", description="Described anew")
    return Request(f"{S}/scheduler/{row.pk}/edit/", values)


def _at() -> str:
    return f"{clock.now():%Y-%m-%d} 03:00"


def _output_of_admin(response: Any) -> str:
    return text_of(response).split("\n")[1]


def _output_of_api(response: Any) -> str:
    (group,) = response.json()["groups"]
    return str(group["lines"][0])


OPERATIONS: dict[str, Operation | tuple[Operation, ...]] = {
    "GET /schedulers": _list(f"{S}/scheduler/"),
    "POST /schedulers": Operation(
        _add,
        lambda rows: Request("", {"worker": "tests.noop", "schedule": "0 8 * * *", "group": _group_name(rows)}),
        is_act=True,
    ),
    "GET /schedulers/{scheduler_id}": Operation(_page(), values=_schedule),
    "PATCH /schedulers/{scheduler_id}": Operation(
        _edit, lambda _rows: Request("", {"description": "Described anew"}), _schedule, is_act=True
    ),
    "DELETE /schedulers/{scheduler_id}": Operation(_act("delete", {"post": "yes"}), values=_schedule, is_act=True),
    "POST /schedulers/{scheduler_id}/pause": Operation(_act("pause", {"reason": ""}), values=_schedule, is_act=True),
    "POST /schedulers/{scheduler_id}/resume": Operation(
        _act("resume", of="paused"), values=lambda rows: {"scheduler_id": rows.paused.pk}, is_act=True
    ),
    "POST /schedulers/{scheduler_id}/run": Operation(_act("run"), values=_schedule, is_act=True),
    "GET /schedulers/{scheduler_id}/next": Operation(_page(), values=_schedule),
    "GET /schedulers/{scheduler_id}/why": Operation(
        lambda rows: Request(f"{S}/scheduler/{rows.schedule.pk}/why/?at={_at()}"),
        lambda _rows: Request(f"?at={_at()}"),
        _schedule,
    ),
    "GET /executions": _list(f"{E}/"),
    "GET /executions/{execution_id}": Operation(
        _page(at="schedulerexecution", of="succeeded"), values=_execution("succeeded")
    ),
    "GET /executions/{execution_id}/output": Operation(
        lambda rows: Request(f"{E}/{rows.succeeded.pk}/output/", read=_output_of_admin),
        lambda _rows: Request("", read=_output_of_api),
        _execution("succeeded"),
    ),
    "GET /executions/{execution_id}/artefacts/{artefact_id}": Operation(
        lambda rows: Request(f"{S}/artefact/{rows.artefact.pk}/download/", read=text_of),
        lambda _rows: Request("", read=text_of),
        lambda rows: {"execution_id": rows.succeeded.pk, "artefact_id": rows.artefact.pk},
    ),
    "POST /executions/{execution_id}/cancel": Operation(
        _act("cancel", at="schedulerexecution", of="running"), values=_execution("running"), is_act=True
    ),
    "POST /executions/{execution_id}/rerun": Operation(
        _act("rerun", at="schedulerexecution", of="succeeded"), values=_execution("succeeded"), is_act=True
    ),
    "GET /failed": _list(f"{S}/failedexecution/?group=each"),
    "GET /failed/groups": Operation(
        lambda _rows: Request(
            f"{S}/failedexecution/?group=error",
            read=lambda response: sorted(group.count for group in response.context["groups"].rows),
        ),
        lambda _rows: Request("", read=lambda response: sorted(one["count"] for one in response.json()["groups"])),
        is_of_rows=False,
    ),
    "POST /failed/republish": _failure("republish"),
    "POST /failed/discard": _failure("discard", reason="known"),
    "POST /reports/generate": _generate(controller=REPORT),
    "GET /handlers": (_handlers("worker"), _handlers("report"), _handlers("reminder")),
    "POST /targets/{type}/{name}/run": (_run_once("worker"), _run_once("report"), _run_once("reminder")),
    "GET /processes": _list(f"{S}/process/"),
    "GET /health": Operation(
        lambda _rows: Request(
            f"{S}/dashboard/?everything", read=lambda response: response.wsgi_request.failures.number
        ),
        lambda _rows: Request("", read=lambda response: response.json()["failed"]),
        is_of_rows=False,
    ),
}
