"""The restarts of a service: a run that should never end, and that is started again whenever it ends.

A restart uses up no retry, so it never ends in the failed inbox. The delays are those of the retry policy: they grow
up to its longest delay. After an hour without an end, the next delay is the first one again.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from scheduling.core.retry import Retry, RetryPolicy, jittered

STEADY = timedelta(hours=1)
"""A service that has run for so long works. Its next end has nothing to do with its earlier ones."""

KEPT_ATTEMPTS = 100
"""So many of the newest attempts of a service are kept, because a service may be started again for years."""

OFTEN = 3
"""A service that has ended so many times in a row, without an hour in between, needs attention."""


def restart(policy: RetryPolicy, restarts: int, lasted: timedelta, random: Callable[[], float] = lambda: 1.0) -> Retry:
    """When a service that has ended starts again.

    Args:
        restarts: how many restarts in a row were made before.
        lasted: how long the service ran without an end.
        random: returns a number in [0, 1) for jitter.

    Returns:
        The delay. Its `number` is the number of the restart, counted from 1 since the service last ran for an hour.
    """
    number = 1 if lasted >= STEADY else restarts + 1
    return Retry(number, jittered(policy, number, random))
