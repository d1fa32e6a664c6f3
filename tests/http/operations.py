"""Each operation of the API, and the page of the admin that does the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import Group
from django.utils import timezone as clock

from reports.models import Report
from scheduling.core.backfill import digest
from scheduling.models import (
    Artefact,
    Backfill,
    Calendar,
    FailedExecution,
    Reminder,
    Scheduler,
    SchedulerExecution,
    Worker,
)
from tests.admin.scheduler_form import ADD, form
from tests.admin.walk import text_of
from tests.factories import (
    BackfillFactory,
    CalendarFactory,
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
    calendar: Calendar
    backfill: Backfill
    waiting: Backfill


def rows_of(name: str, group: Group | None, handler: str = "tests.noop") -> Rows:
    """Store the rows.

    Args:
        name: names them in a failure of the test.
        handler: the worker that they run.
    """
    own = SchedulerFactory(handler=handler, group=group)
    own.time_limit = 3_600  # its second revision
    own.save()
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
        calendar=CalendarFactory(group=group),
        backfill=BackfillFactory(scheduler=own),
        waiting=BackfillFactory(scheduler=own, paused=True),
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


def _calendar(rows: Rows, **values: str) -> dict[str, Any]:
    """The form of a calendar."""
    own = {name: getattr(rows.calendar, name) for name in ("name", "description", "timezone", "entries")}
    return {**own, "group": rows.group.pk if rows.group is not None else "", **values}


def _range(rows: Rows) -> Request:
    """The second page of a backfill, which starts it."""
    day = clock.now() - timedelta(days=2)
    values = {"since_0": f"{day:%Y-%m-%d}", "since_1": "00:00", "until_0": f"{day:%Y-%m-%d}", "until_1": "23:59"}
    times = [int(day.replace(hour=8, minute=0, second=0, microsecond=0).timestamp())]
    own = {"order": "oldest", "per_minute": 60, "reason": "", "seen": digest([(rows.schedule.pk, times)])}
    return Request(f"{S}/scheduler/{rows.schedule.pk}/backfill/", values | own)


def _range_of_api(_rows: Rows) -> Request:
    day = f"{clock.now() - timedelta(days=2):%Y-%m-%d}"
    return Request("", {"from": day, "until": day})


def _backfill(verb: str, of: str = "backfill") -> Operation:
    return Operation(
        _act(verb, at="backfill", of=of), values=lambda rows: {"backfill_id": getattr(rows, of).pk}, is_act=True
    )


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
    "GET /calendars": _list(f"{S}/calendar/"),
    "GET /calendars/{calendar_id}": Operation(
        _page(at="calendar", of="calendar"), values=lambda rows: {"calendar_id": rows.calendar.pk}
    ),
    "POST /calendars": Operation(
        lambda rows: Request(f"{S}/calendar/add/", _calendar(rows, name="New one")),
        lambda rows: Request("", {"name": "New one", "entries": "sat", "group": _group_name(rows)}),
        is_act=True,
    ),
    "PATCH /calendars/{calendar_id}": Operation(
        lambda rows: Request(f"{S}/calendar/{rows.calendar.pk}/change/", _calendar(rows, description="Anew")),
        lambda _rows: Request("", {"description": "Anew"}),
        lambda rows: {"calendar_id": rows.calendar.pk},
        is_act=True,
    ),
    "DELETE /calendars/{calendar_id}": Operation(
        _act("delete", {"post": "yes"}, at="calendar", of="calendar"),
        values=lambda rows: {"calendar_id": rows.calendar.pk},
        is_act=True,
    ),
    "GET /schedulers/{scheduler_id}/revisions": Operation(_page(), values=_schedule),
    "POST /schedulers/{scheduler_id}/revisions/{number}/undo": Operation(
        _act("undo", {"number": "2", "reason": ""}), values=lambda rows: {**_schedule(rows), "number": 2}, is_act=True
    ),
    "POST /schedulers/{scheduler_id}/revisions/{number}/restore": Operation(
        _act("restore", {"number": "1", "reason": ""}),
        values=lambda rows: {**_schedule(rows), "number": 1},
        is_act=True,
    ),
    "POST /schedulers/preview": Operation(
        lambda _rows: Request(f"{S}/scheduler/changes/0/?schedule=0+9+*+*+*"),
        lambda _rows: Request("", {"worker": "tests.noop", "schedule": "0 9 * * *"}),
        is_of_rows=False,
    ),
    "POST /schedulers/{scheduler_id}/preview": Operation(
        lambda rows: Request(f"{S}/scheduler/changes/{rows.schedule.pk}/?schedule=0+9+*+*+*"),
        lambda _rows: Request("", {"schedule": "0 9 * * *"}),
        _schedule,
    ),
    "POST /schedulers/{scheduler_id}/backfill": Operation(_range, _range_of_api, _schedule, is_act=True),
    "GET /backfills": _list(f"{S}/backfill/"),
    "GET /backfills/{backfill_id}": Operation(
        _page(at="backfill", of="backfill"), values=lambda rows: {"backfill_id": rows.backfill.pk}
    ),
    "POST /backfills/{backfill_id}/pause": _backfill("pause"),
    "POST /backfills/{backfill_id}/resume": _backfill("resume", "waiting"),
    "POST /backfills/{backfill_id}/cancel": _backfill("cancel"),
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
