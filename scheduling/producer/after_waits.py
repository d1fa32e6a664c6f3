"""Looks again at the occurrences that wait for a predecessor.

Consumers let them go when the predecessor succeeds. This sweep finds the latest times, and what a consumer has missed
because it was killed or did not know yet who waits.
"""

from __future__ import annotations

import time
from datetime import datetime

from scheduling.broker import Broker
from scheduling.core.lifecycle import State
from scheduling.execution.after_runs import blocked, look
from scheduling.models.used_queues import in_used_queues
from scheduling.processes import left_out

ROWS_PER_LOOK = 500
LOOK_SECONDS = 2.0
"""The longest time for which one sweep looks at a backlog."""


def look_at_waiting(broker: Broker, now: datetime) -> int:
    """Look at the occurrences whose time to be looked at has come. Returns how many do not wait any longer.

    The index (state, queue, wake_at, id) finds them, so the work grows with what waits.
    """
    done, until = 0, time.monotonic() + LOOK_SECONDS
    while (used := in_used_queues(State.BLOCKED)) is not None:
        due = left_out.executions.without(blocked().filter(used, wake_at__lte=now))
        keys = list(due.order_by("wake_at", "pk").values_list("pk", flat=True)[:ROWS_PER_LOOK])
        if keys:
            done += look(keys, broker, now)
        if len(keys) < ROWS_PER_LOOK or time.monotonic() > until:
            break
    return done
