"""Runs everything that is due, as producers and consumers would, in the process and the transaction of a test."""

from __future__ import annotations

from scheduling.testing.inline_fleet import MOST_RUNS, InlineFleet
from scheduling.testing.outcome import RunOutcome


def drain(*, services: bool = False, raise_errors: bool = True, most_runs: int = MOST_RUNS) -> list[RunOutcome]:
    """Claim the schedules that are due, and run all executions that are due: queued ones, and retries.

    It works in the transaction of a test: nothing is committed, and no process is started. What the runs register with
    `transaction.on_commit` is called after each run. A retry that waits for its delay is not due: see `travel`.

    Args:
        services: whether services run, too. A service should never end, so the test would wait for it.
        raise_errors: whether to raise the first error that a handler raises. The attempt is recorded before.
        most_runs: after this many runs, NeverEmpty is raised.

    Returns:
        The runs, in the order in which they ran.

    Raises:
        NotTheDatabaseTransport: CRON_BROKER_URL names a broker.
        NeverEmpty: there are more than `most_runs` runs.
        Held: the database was copied or restored, and no person has confirmed it.
    """
    with InlineFleet(services=services, raise_errors=raise_errors, most_runs=most_runs) as fleet:
        return list(fleet.work())
