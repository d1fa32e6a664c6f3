"""Plans schedules again that were set aside and have been mended since.

The sweep of stale plans sees only the columns of the plan. A schedule may also be set aside for another column, for
example for params that are no object. So the producers try each such schedule every
`MEND_SECONDS` (`producer/loop.py`).
"""

from __future__ import annotations

import uuid
from datetime import datetime

from django.db import transaction

from scheduling.core.lifecycle import Trigger
from scheduling.execution.insert import execution_of, insert
from scheduling.execution.planning import plan_row
from scheduling.execution.publish import initial_columns
from scheduling.logs import get_logger
from scheduling.models import Scheduler
from scheduling.models.plan import PlanState
from scheduling.processes.database import is_away

log = get_logger(__name__)

ROWS_PER_TURN = 200


class Mending:
    """Goes through the schedules that are set aside, at most `ROWS_PER_TURN` in each turn."""

    def __init__(self) -> None:
        self._after = 0
        """The primary key after which the next turn begins, so that schedules which stay broken hide no others."""

    def turn(self, now: datetime) -> int:
        """Try the next schedules. Returns how many are planned again.

        Raises:
            django.db.DatabaseError: the database cannot be reached.
        """
        aside = Scheduler.objects.filter(plan_state=PlanState.SET_ASIDE, pk__gt=self._after)
        keys = list(aside.order_by("pk").values_list("pk", flat=True)[:ROWS_PER_TURN])
        self._after = keys[-1] if len(keys) == ROWS_PER_TURN else 0
        return sum(_mend(pk, now) for pk in keys)


class _TryOnly(Exception):
    """Takes the execution back that was inserted to try the schedule."""


def _mend(pk: int, now: datetime) -> bool:
    try:
        with transaction.atomic():
            # A save may have mended it since, or may be about to. What is saved then must not be overwritten.
            aside = Scheduler.objects.filter(plan_state=PlanState.SET_ASIDE).select_for_update(skip_locked=True)
            row = aside.get(pk=pk)
            plan_row(row, now)
            _try_claim(row, now)
    except Exception as error:
        if is_away(error):
            raise
        return False  # the schedule is deleted or still broken, and plan_error says why
    log.info("A schedule that was set aside is planned again", extra={"scheduler_id": pk})
    return True


def _try_claim(row: Scheduler, now: datetime) -> None:
    """Insert an execution and take it back.

    Raises:
        Exception: a producer could not claim an occurrence of this schedule.
    """
    columns = initial_columns(now, embedded=True)
    key = f"try-{uuid.uuid4()}"
    try:
        with transaction.atomic():
            made = execution_of(row, now, execution_key=key, scheduled_at=now, trigger=Trigger.CRON.value, **columns)
            if not insert([made]):
                raise ValueError("the database refuses its executions")
            raise _TryOnly
    except _TryOnly:
        return
