"""The newest runs of schedules. What cannot change any more is remembered from one evaluation to the next."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from scheduling.alerts.memory import Memory
from scheduling.alerts.runs import RECENT, Run, newest_keys, recent_runs, runs_by_key
from scheduling.core.lifecycle import ENDED

FRESH = timedelta(minutes=2)
"""After so long, the runs of a schedule are read anew. A run may commit later than a newer one."""

SPREAD_SECONDS = 60
"""The schedules are not all read anew in the same evaluation."""

_ENDED = {state.value for state in ENDED}


@dataclass
class RecentRuns:
    """Reads the newest runs of schedules.

    Args:
        count: so many runs of each schedule are read.
        open_runs: open runs that were just read with the columns `RECENT`, by their keys. They are not read again.
    """

    memory: Memory
    now: datetime
    count: int
    open_runs: Mapping[int, Run]

    def of(self, schedules: Collection[int]) -> dict[int, list[Run]]:
        """The newest runs of each of these schedules, the oldest first."""
        newest = newest_keys(schedules)
        known = {pk: runs for pk in schedules if (runs := self._known(pk, newest.get(pk))) is not None}
        going_on = [run.pk for runs in known.values() for run in runs if run.state not in _ENDED]
        changed = {pk: run for pk in going_on if (run := self.open_runs.get(pk)) is not None}
        changed |= runs_by_key([pk for pk in going_on if pk not in changed], RECENT)
        gone = set(going_on) - changed.keys()
        found = {pk: [changed.get(run.pk, run) for run in runs if run.pk not in gone] for pk, runs in known.items()}
        found |= recent_runs([pk for pk in schedules if pk not in known], self.count)
        for pk, runs in found.items():
            if pk not in known:
                self._keep(pk, runs)
        return found

    def _known(self, schedule: int, newest: int | None) -> list[Run] | None:
        runs: list[Run] | None = self.memory.known(("runs", self.count, schedule), self.now, FRESH)
        return runs if runs and runs[-1].pk == newest else None

    def _keep(self, schedule: int, runs: list[Run]) -> None:
        earlier = self.now - timedelta(seconds=schedule % SPREAD_SECONDS)
        self.memory.keep(("runs", self.count, schedule), earlier, runs)
