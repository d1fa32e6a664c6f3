"""Pauses, resumes and runs a schedule in the name of an actor."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.translation import gettext as _

from scheduling.core.deployment import Held
from scheduling.core.json_bounds import problem
from scheduling.core.known_sentences import for_reader, in_language
from scheduling.core.lifecycle import State
from scheduling.core.occurrences import manual_key
from scheduling.core.text import visible_text
from scheduling.execution.own_broker import own_broker
from scheduling.execution.run_now import run_now
from scheduling.handlers.permission import refusal
from scheduling.handlers.targets import handler_of
from scheduling.handlers.validation import run_params_error
from scheduling.models import Scheduler, SchedulerExecution
from scheduling.models.author import Author, authored
from scheduling.operations.actor import Actor
from scheduling.operations.audit import params_edits, record
from scheduling.operations.params_diff import Change, hidden_words, masked_names, unmask
from scheduling.operations.pause_reason import pause_reason
from scheduling.operations.refused import Code, Refused, problems_of
from scheduling.operations.schedules import by_id, locked
from scheduling.processes.conflicts import again_after_conflicts

PAUSE = ("scheduling.pause_scheduler", "scheduling.change_scheduler")
RUN = "scheduling.run_scheduler"


def switch(row: Scheduler, active: bool, reason: str, by: Author, name: str) -> list[Change]:
    """Pause or resume a schedule, and save it. Returns what the history says about it.

    Args:
        by: the author of the revision.
        name: the name of the user, for the row.

    Raises:
        django.core.exceptions.ValidationError: its plan cannot be used.
    """
    former, row.status, row.pause_reason = row.pause_reason, active, reason
    row.paused_by = name  # used only if this save pauses the schedule
    with authored(by):
        row.save(update_fields=["status", "pause_reason", "updated_at"])
    edits = [Change("status", "no", "yes") if active else Change("status", "yes", "no")]
    return edits if former == reason else [*edits, Change("pause_reason", former or None, reason or None)]


def set_active(actor: Actor, pk: int, active: bool, reason: str = "") -> Scheduler:
    """Pause or resume a schedule. If it is so already, nothing changes.

    Raises:
        Refused: FORBIDDEN, NOT_FOUND or INVALID.
    """
    actor.must(*PAUSE)

    def work() -> Scheduler:
        with transaction.atomic():
            row = locked(actor, pk)
            if row.status != active:
                try:
                    said = "" if active else pause_reason(reason)
                    edits = switch(row, active, said, actor.author(said), actor.get_username())
                except ValidationError as error:
                    raise Refused.invalid(problems_of(error)) from None
                record(actor, [row], "", edits)
        return row

    return again_after_conflicts(work)


def run(
    actor: Actor,
    pk: int,
    params: Mapping[str, Any] | None = None,
    key: uuid.UUID | None = None,
    *,
    beside: bool = False,
) -> SchedulerExecution:
    """Run a schedule once, now.

    Args:
        params: replace the schedule's own params for this run. A masked secret keeps the schedule's value.
        key: a second call with the same key makes no new run.
        beside: start it beside a run that is not over, whatever the overlap of the schedule says.

    Raises:
        Refused: FORBIDDEN, NOT_FOUND, INVALID, HELD; CONFLICT if the schedule runs alone and another run is open. Then
            `extra` has the skipped execution.
    """
    actor.must(RUN)
    row, key = by_id(actor, pk), key or uuid.uuid4()
    if refused := refusal(actor, row):
        raise Refused(Code.FORBIDDEN, refused)
    own = row.params if isinstance(row.params, dict) else {}
    code = handler_of(row)
    wanted = own if params is None else unmask(code, own, params)
    check_params(row.target_type, row.target, wanted, stored=params is None)
    name = manual_key(key)
    known = SchedulerExecution.objects.filter(scheduler=row, execution_key=name).exists()
    edits = params_edits(code, own, dict(wanted)) if params is not None else []
    try:
        with transaction.atomic():  # no run without its entry of the history
            made = run_now(row, own_broker(), actor.by, key=key, instead=wanted, beside=beside)
            if not known:
                record(actor, [row], "run now, for this run only" if edits else "run now", edits)
    except Held as held:
        raise Refused(Code.HELD, in_language(str(held))) from None
    return started(made)


def started(made: SchedulerExecution) -> SchedulerExecution:
    """The execution, if it was not skipped at once.

    Raises:
        Refused: CONFLICT.
    """
    if made.state == State.SKIPPED.value:
        raise Refused(Code.CONFLICT, for_reader(made.reason, 500), extra={"execution": made.pk})
    return made


def check_params(type_: str, target: Any, params: Mapping[str, Any], *, stored: bool = False) -> None:
    """Check the params of one run.

    Args:
        stored: whether they are the stored params of the schedule or the execution, without a change.

    Raises:
        Refused: INVALID.
    """
    if target is None:
        raise Refused(Code.CONFLICT, _("The schedule has no target."))
    if masked_names(params):
        raise Refused.value("params", hidden_words(), "secret")
    if said := problem(_("The JSON"), params):
        raise Refused.value("params", said, "characters")
    if said := run_params_error(type_, target, dict(params), stored=stored):
        raise Refused.value("params", visible_text(said, 1_000), "params")
