"""Finds, cancels and reruns executions in the name of an actor."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from scheduling.core.deployment import Held
from scheduling.core.known_sentences import in_language
from scheduling.core.occurrences import manual_key
from scheduling.core.text import is_number, visible_text
from scheduling.execution import cancel as cancelling
from scheduling.execution.own_broker import own_broker
from scheduling.execution.run_now import run_now
from scheduling.handlers.permission import refusal
from scheduling.handlers.secret_params import masked
from scheduling.handlers.targets import handler_of, handler_of_execution
from scheduling.handlers.validation import run_params_error
from scheduling.models import SchedulerExecution
from scheduling.operations.actor import Actor
from scheduling.operations.audit import params_edits, record
from scheduling.operations.params_diff import unmask
from scheduling.operations.refused import Code, Refused
from scheduling.operations.schedule_state import check_params, started

VIEW = "scheduling.view_schedulerexecution"
CANCEL = "scheduling.cancel_execution"
RERUN = "scheduling.rerun_execution"


def seen(actor: Actor) -> QuerySet[SchedulerExecution]:
    """The executions that the actor sees.

    Raises:
        Refused: FORBIDDEN.
    """
    actor.must(VIEW)
    return actor.visible.executions()


def by_id(actor: Actor, pk: int) -> SchedulerExecution:
    """The execution with this id. Its schedule is None if the actor does not see it.

    Raises:
        Refused: FORBIDDEN or NOT_FOUND, also for an execution that the actor does not see.
    """
    found = actor.visible.with_schedules(seen(actor).select_related("group").filter(pk=pk)).first()
    if found is None:
        raise Refused(Code.NOT_FOUND, _("There is no execution %(id)s, or you may not see it.") % {"id": pk})
    return found


def find(actor: Actor, text: str) -> SchedulerExecution:
    """The execution with this id.

    Raises:
        Refused: FORBIDDEN or NOT_FOUND.
    """
    if is_number(text):
        return by_id(actor, int(text))
    said = _("There is no execution “%(id)s”: an execution has a number.") % {"id": visible_text(text, 60)}
    raise Refused(Code.NOT_FOUND, said)


def cancel(actor: Actor, pk: int) -> str:
    """Cancel an execution that waits or runs. Returns `cancelled`, or `asked` if its process will end within seconds.

    Raises:
        Refused: FORBIDDEN, NOT_FOUND, or CONFLICT if it has already ended.
    """
    actor.must(CANCEL)
    row = by_id(actor, pk)
    if refused := refusal(actor, row):
        raise Refused(Code.FORBIDDEN, refused)
    with transaction.atomic():
        said = cancelling.cancel(row.pk, actor.by)
        if said not in ("cancelled", "asked"):
            raise Refused(Code.CONFLICT, _("It had already ended. Nothing was cancelled."))
        record(actor, [row], f"cancel: {said}")
    return said


def rerun_problem(row: SchedulerExecution) -> str:
    """Why the schedule cannot run again with the execution's unchanged parameters; empty if a rerun is possible."""
    if row.scheduler is None:
        return _(
            "It has no schedule: it never had one, the schedule is deleted, or you may not see it. "
            "Run its target instead."
        )
    if not isinstance(row.params, dict):
        return _("The parameters are not a JSON object.")
    former = handler_of_execution(row)
    if former is not handler_of(row.scheduler) and masked(former, row.params) != row.params:
        return _("The schedule now has another target, and secrets are not copied to it. Use “Edit and run again”.")
    # visible_text, because the error quotes the names of unknown parameters.
    said = run_params_error(row.scheduler.target_type, row.scheduler.target, row.params, stored=True)
    found = visible_text(said, 1_000)
    return _("The parameters no longer fit the code: %s") % found if found else ""


def rerun(
    actor: Actor, pk: int, params: Mapping[str, Any] | None = None, key: uuid.UUID | None = None
) -> SchedulerExecution:
    """Run the schedule of an execution again, now, with the params of the execution or with the given ones.

    Args:
        params: all params of the new run. A masked secret keeps the execution's value.
        key: a second call with the same key makes no new run.

    Raises:
        Refused: FORBIDDEN, NOT_FOUND, INVALID, HELD, or CONFLICT.
    """
    actor.must(RERUN)
    row, key = by_id(actor, pk), key or uuid.uuid4()
    if refused := refusal(actor, row):
        raise Refused(Code.FORBIDDEN, refused)
    if params is None and (problem := rerun_problem(row)):
        raise Refused(Code.CONFLICT, problem)
    schedule = row.scheduler
    if schedule is None:
        raise Refused(Code.CONFLICT, rerun_problem(row))
    former, own = handler_of_execution(row), row.params if isinstance(row.params, dict) else {}
    code = handler_of(schedule)
    # Secrets are not copied to another target.
    wanted = own if params is None else unmask(code, own if former is code else {}, params)
    check_params(schedule.target_type, schedule.target, wanted, stored=params is None)
    known = SchedulerExecution.objects.filter(scheduler=schedule, execution_key=manual_key(key, row.pk)).exists()
    try:
        with transaction.atomic():  # no run without its entries of the history
            made = run_now(schedule, own_broker(), actor.by, key=key, instead=wanted, again=row)
            if not known:
                note_rerun(actor, row, made, wanted)
    except Held as held:
        raise Refused(Code.HELD, in_language(str(held))) from None
    return started(made)


def note_rerun(actor: Any, row: SchedulerExecution, made: SchedulerExecution, params: Mapping[str, Any]) -> None:
    """Record the rerun in the history of the execution and of its schedule.

    Args:
        actor: an `Actor` or a request.
    """
    schedule = row.scheduler
    if schedule is None:
        return
    edits = params_edits(handler_of(schedule), row.params, dict(params), handler_of_execution(row))
    record(actor, [row], f"run again: execution {made.pk}", edits)
    record(actor, [schedule], f"run now: execution {made.pk}, again as {row.pk}", edits)
