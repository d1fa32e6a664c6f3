"""The batches of one consumer that still gather their runs. Each of them reserves a slot."""

from __future__ import annotations

from collections.abc import Iterator

from scheduling.consumer.batch import Batch, Shared
from scheduling.consumer.running import Running
from scheduling.core.batch import Batching


class Gathering:
    """The batches that are not called yet."""

    def __init__(self) -> None:
        self._batches: list[Batch] = []
        self.look_at = 0.0
        """The monotonic time at which the queue is looked at for further runs."""

    def __len__(self) -> int:
        return len(self._batches)

    @property
    def runs(self) -> Iterator[Running]:
        """The runs that have started and wait for their call."""
        return (run for batch in self._batches for run in batch.members)

    def add(self, run: Running, rules: Batching, now: float) -> None:
        """Put a started run into the batch that fits, or into a new one. `now` is monotonic."""
        shared = Shared.of(run.delivery.message, run.config, run.delivery.queue)
        batch = next((batch for batch in self._batches if batch.shared == shared and batch.room), None)
        if batch is None:
            batch = Batch(shared, rules, until=now + rules.wait)
            self._batches.append(batch)
            self.look_at = 0.0
        batch.add(run)

    def remove(self, run: Running) -> None:
        """Leave out a run. A batch without runs is forgotten."""
        batch: Batch = run.batch
        batch.remove(run)
        if not batch.members:
            self._batches.remove(batch)

    def hungry(self, now: float) -> list[Batch]:
        """The batches that take further runs now; empty if the queue need not be looked at yet."""
        return [batch for batch in self._batches if batch.room] if now >= self.look_at else []

    def due(self, now: float, slots: int | None) -> list[Batch]:
        """Remove and return the batches to be called now: those that are full, or have waited for long enough.

        Args:
            slots: how many of them can be called; None: all batches are called at once, because the consumer stops.
        """
        due = [batch for batch in self._batches if slots is None or not batch.room or now >= batch.until][:slots]
        self._batches = [batch for batch in self._batches if batch not in due]
        return due

    def next_clock(self, *, takes: bool) -> float | None:
        """The monotonic time at which something is to be done; None if no batch gathers.

        Args:
            takes: whether the consumer takes further runs.
        """
        times = [batch.until for batch in self._batches]
        if takes and any(batch.room for batch in self._batches):
            times.append(self.look_at)
        return min(times, default=None)
