"""Settles the runs of a batch that have succeeded, with few statements for all of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime

from scheduling.consumer.batch import Batch
from scheduling.consumer.running import Running
from scheduling.core.lifecycle import State
from scheduling.core.outcome import Succeeded
from scheduling.execution.bulk_transitions import settle_succeeded
from scheduling.execution.settle import Settled
from scheduling.execution.transitions import AttemptValues, Entry

FEWEST = 8
"""Fewer runs of a batch are settled one by one."""


def settle_batches(runs: Iterable[Running], now: datetime, attempts: list[AttemptValues]) -> dict[Running, Settled]:
    """Settle runs of batches. Those that have not succeeded are left to the caller.

    Args:
        attempts: gets the rows of the attempts.

    Returns:
        The results of the runs. `state` is None for those that other processes own by now.
    """
    batches = defaultdict[Batch | None, list[Running]](list)
    for run in runs:
        if isinstance(run.outcome, Succeeded):
            batches[run.batch].append(run)
    settled: dict[Running, Settled] = {}
    for members in batches.values():
        if len(members) >= FEWEST:
            settled |= _settle(members, now, attempts)
    return settled


def _settle(members: list[Running], now: datetime, attempts: list[AttemptValues]) -> dict[Running, Settled]:
    ended, outcomes = {run.execution_id: run.ended for run in members}, {}
    for run in members:
        assert isinstance(run.outcome, Succeeded)  # noqa: S101
        outcomes[run.execution_id] = run.outcome
    entries = {
        pk: (ended[pk], Entry(outcome.name, outcome.exit_code, result=outcome.result))
        for pk, outcome in outcomes.items()
    }
    won = settle_succeeded(entries, now, attempts)
    return {
        run: Settled(
            ended[run.execution_id],
            outcomes[run.execution_id],
            now,
            State.SUCCEEDED if run.execution_id in won else None,
        )
        for run in members
    }
