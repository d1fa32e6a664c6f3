"""Which attempts still own their execution. Everything that an attempt writes is checked here before its commit.

The result, the progress and the process id need no check of their own: their statements name the attempt.
"""

from __future__ import annotations

from collections.abc import Iterable

from django.db import connection

from scheduling.core.lifecycle import State
from scheduling.core.steps import FencedOff
from scheduling.models import SchedulerExecution
from scheduling.processes.database import locking

AttemptKey = tuple[int, int]
"""The id of an execution, and the number of an attempt."""


def owned(attempts: Iterable[AttemptKey]) -> set[AttemptKey]:
    """The attempts that still own their execution. In a transaction, the rows of all executions are locked.

    So no process can take a run over between the check and the commit. Lock at the end of a transaction only, because
    the consumer renews the leases in these rows.

    The lease is not compared: as long as no other process has settled the attempt, its work is not repeated.
    """
    asked = set(attempts)
    rows = SchedulerExecution.objects.filter(pk__in=sorted(pk for pk, _ in asked), state=State.RUNNING.value)
    found = locking(rows.order_by("pk")) if connection.in_atomic_block else rows
    return asked & set(found.values_list("pk", "attempt"))


def check_owner(execution_id: int, attempt: int) -> None:
    """Check that an attempt still owns its execution, and lock it as `owned` does.

    Raises:
        FencedOff: the attempt does not own its execution any more.
    """
    if not owned([(execution_id, attempt)]):
        raise FencedOff("Another process owns this execution by now. Nothing more of this attempt is stored.")
