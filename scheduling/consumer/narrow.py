"""Narrow: which waiting executions may join a batch that gathers."""

from __future__ import annotations

from scheduling.consumer.batch import Batch, Shared
from scheduling.core.messages import TaskMessage
from scheduling.core.origin import Origin
from scheduling.handlers.run_config import RunConfigs
from scheduling.processes.database import is_away


class Narrow:
    """Which waiting executions may join a batch that gathers.

    Args:
        configs: looks up how executions are run.
    """

    def __init__(self, batch: Batch, configs: RunConfigs) -> None:
        self._shared, self._configs = batch.shared, configs
        self.queue = batch.shared.queue
        self._known: dict[Origin, bool] = {}

    def __call__(self, origin: Origin) -> bool:
        """Whether an execution of this origin fits into the batch."""
        if origin not in self._known:
            self._known[origin] = self._fits(origin)
        return self._known[origin]

    def _fits(self, origin: Origin) -> bool:
        shared = self._shared
        if (origin.type, origin.target_id, origin.group_id) != (shared.type, shared.target_id, shared.group_id):
            return False
        message = TaskMessage(origin.type, origin.target_id, scheduler_id=origin.scheduler_id, group_id=origin.group_id)
        try:
            return Shared.of(message, self._configs.get(message), self.queue) == shared
        except Exception as error:  # plain SQL has written a value that cannot be used; `start.begin` handles the run
            if is_away(error):
                raise
            return False
