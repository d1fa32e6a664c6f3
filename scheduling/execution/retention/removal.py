"""Removes one batch: executions with all that belongs to them, or only their output and artefacts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from django.db import transaction

from scheduling.core.lifecycle import ENDED
from scheduling.core.retention import Rule
from scheduling.execution import artefacts
from scheduling.execution.retention.pruned import Pruned
from scheduling.execution.tallying import tally_now
from scheduling.logs import get_logger
from scheduling.models import (
    Artefact,
    Attempt,
    DeathRecord,
    Event,
    LimitPlace,
    Notification,
    Output,
    Ping,
    RunStep,
    SchedulerExecution,
)
from scheduling.processes.conflicts import again_after_conflicts
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
    # Two passes may make the row of the tallies' mark at the same time, which MySQL and MariaDB end as a deadlock.
    own, removed_outputs, removed_attempts = again_after_conflicts(lambda: _remove(ids))
    done.outputs += removed_outputs
    done.attempts += removed_attempts
    done.rules.update(rules[pk] for pk in own)


def _remove(ids: Sequence[int]) -> tuple[list[int], int, int]:
    """Remove those that have ended, in one transaction. Returns them, and how many outputs and attempts they had."""
    with transaction.atomic():
        ended = SchedulerExecution.objects.filter(pk__in=ids, state__in=ENDED_STATES).order_by("pk")
        own = list(ended.select_for_update(skip_locked=True).values_list("pk", flat=True))
        if not own:
            return [], 0, 0
        tally_now(own)
        # Dependent rows are deleted first, in plain SQL. Django's own cascade would load every row.
        outputs, attempts = (model._default_manager.filter(execution__in=own) for model in (Output, Attempt))
        numbers = outputs._raw_delete(outputs.db), attempts._raw_delete(attempts.db)
        for model in (DeathRecord, Event, LimitPlace, Notification, Ping, RunStep):
            model._default_manager.filter(execution__in=own)._raw_delete(outputs.db)
        SchedulerExecution.objects.filter(pk__in=own)._raw_delete(outputs.db)
    return own, *numbers


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
