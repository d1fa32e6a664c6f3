"""Removes one batch: executions with all that belongs to them, or only their output and artefacts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from django.db import transaction

from scheduling.core.lifecycle import ENDED
from scheduling.core.retention import Rule
from scheduling.execution import artefacts
from scheduling.execution.retention.pruned import Pruned
from scheduling.logs import get_logger
from scheduling.models import (
    Artefact,
    Attempt,
    DeathRecord,
    Event,
    LimitPlace,
    Notification,
    Output,
    RunStep,
    SchedulerExecution,
)
from scheduling.signals import executions_pruned

log = get_logger(__name__)

ENDED_STATES = sorted(state.value for state in ENDED)


def remove(rules: Mapping[int, Rule], done: Pruned, *, dry_run: bool) -> None:
    """Remove executions that have ended, with their artefacts, output and attempts.

    Artefacts are removed first, because a file without a row would never be found again. If the process is killed, the
    next pass finds the executions once more. Rows that another pass is removing at the same time are left to it. A row
    that has not ended stays, whatever the caller asks for.

    Args:
        rules: maps the id of each execution to the rule that removes it.
    """
    if not rules:
        return
    ids = sorted(rules)
    outputs, attempts = Output.objects.filter(execution__in=ids), Attempt.objects.filter(execution__in=ids)
    if dry_run:
        done.rules.update(rules.values())
        done.outputs += outputs.count()
        done.attempts += attempts.count()
        return
    artefacts.remove(Artefact.objects.of(ids))
    for receiver, answer in executions_pruned.send_robust(sender=SchedulerExecution, ids=ids):
        if isinstance(answer, Exception):
            log.error("A receiver of executions_pruned raised: %r: %r", receiver, answer)
    with transaction.atomic():
        ended = SchedulerExecution.objects.filter(pk__in=ids, state__in=ENDED_STATES).order_by("pk")
        own = list(ended.select_for_update(skip_locked=True).values_list("pk", flat=True))
        # Dependent rows are deleted first, in plain SQL. Django's own cascade would load every row.
        done.outputs += Output.objects.filter(execution__in=own)._raw_delete(outputs.db) if own else 0
        done.attempts += Attempt.objects.filter(execution__in=own)._raw_delete(outputs.db) if own else 0
        if own:
            for model in (DeathRecord, Event, LimitPlace, Notification, RunStep):
                model._default_manager.filter(execution__in=own)._raw_delete(outputs.db)
            SchedulerExecution.objects.filter(pk__in=own)._raw_delete(outputs.db)
    done.rules.update(rules[pk] for pk in own)


def strip(ids: Sequence[int], done: Pruned, *, dry_run: bool) -> None:
    """Remove the output and the artefacts of executions that have ended. The executions stay."""
    if not ids:
        return
    outputs = Output.objects.filter(execution__in=ids)
    having = {*outputs.order_by().values_list("execution", flat=True).distinct()}
    having |= {*Artefact.objects.of(ids).order_by().values_list("execution", flat=True).distinct()}
    if dry_run:
        done.outputs += outputs.count()
    else:
        artefacts.remove(Artefact.objects.of(ids))
        with transaction.atomic():
            done.outputs += outputs._raw_delete(outputs.db)
    done.rules[Rule.OUTPUT] += len(having)
