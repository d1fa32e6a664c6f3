"""A batch: the runs that one call of a batch handler gets. The consumer owns each of them by itself."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from scheduling.consumer.child_batch import MEMBERS
from scheduling.consumer.running import Running
from scheduling.core.batch import Batching
from scheduling.core.messages import TaskMessage
from scheduling.core.outcome import Cancelled
from scheduling.execution.transitions import BatchLink
from scheduling.handlers.run_config import RunConfig

MOST_CHARACTERS = 12_000_000
"""A batch whose params have so many characters is full. Its task must fit into one frame."""


FIGURES = frozenset({"cpu_ms", "peak_memory_kb", MEMBERS})
"""The fields of an answer that are about the process of the whole batch."""


class Shared(NamedTuple):
    """What the runs of one batch have in common.

    They have one group, so a user who may see one of them may see what the batch prints about all of them. They have
    one language and one time limit, because those are the call's. They have one work queue, so none jumps its line.
    """

    type: str
    target_id: int
    handler: str
    queue: str
    group_id: int | None
    language: str
    time_limit: int

    @classmethod
    def of(cls, message: TaskMessage, config: RunConfig, queue: str) -> Shared:
        """What a run shares with the others of its batch."""
        return cls(
            message.type, message.id, config.handler, queue, message.group_id, config.language, config.time_limit
        )


@dataclass(eq=False)
class Batch:
    """The runs of one call. The first one leads: it has the child and the output.

    Args:
        until: the monotonic time at which it is called, although it is not full.
    """

    shared: Shared
    rules: Batching
    until: float
    members: list[Running] = field(default_factory=list)
    cancelled: dict[Running, str] = field(default_factory=dict)
    """The runs that are cancelled, and who has asked for it."""
    called: bool = False
    """Whether it has gathered its runs, and waits for its child or has it."""
    _characters: int = 0

    @property
    def leader(self) -> Running:
        """The run that has the child and the output: the one with the lowest id of all."""
        return self.members[0]

    @property
    def room(self) -> int:
        """How many more runs it can take."""
        return 0 if self._characters >= MOST_CHARACTERS else max(0, self.rules.size - len(self.members))

    def add(self, run: Running) -> None:
        """Take a run that has started."""
        run.batch = self
        self.members.append(run)
        self._characters += len(json.dumps(run.delivery.message.params, default=str))

    def remove(self, run: Running) -> None:
        """Leave out a run before the batch is called."""
        run.batch = None
        self.members.remove(run)

    def close(self) -> Running:
        """Let no further run in; returns the leader. The runs are in the order of their ids."""
        self.called = True
        self.members.sort(key=lambda run: run.execution_id)
        return self.leader

    def start(self) -> None:
        """Take note that the leader has its child."""
        for run in self.members:
            run.pid = self.leader.pid

    @property
    def link(self) -> BatchLink | None:
        """Names the leader's attempt; None before the call."""
        if not self.called:
            return None
        return BatchLink(self.leader.execution_id, self.leader.delivery.message.attempt, len(self.members))

    def tasks(self) -> dict[str, Any]:
        """The part of the leader's task that has an entry for each run. The leader's own params stand only there."""
        leader = self.leader
        return {"params": {}, MEMBERS: [self._task_of(run, leader.config) for run in self.members]}

    def _task_of(self, run: Running, leading: RunConfig) -> dict[str, Any]:
        own = {"params": run.delivery.message.params, "run": run.facts()}
        if run.config.target_params != leading.target_params:  # it was read before an operator has changed it
            own["target_params"] = run.config.target_params
        return own

    def share_end(self) -> None:
        """Give each run its own part of the leader's answer, and the leader's verdict and child."""
        leader = self.leader
        answer = leader.answer
        for run, entry in zip(self.members, self._entries(answer), strict=True):
            if entry is not None and answer is not None:
                # The figures of the process are the leader's.
                run.answer = {**answer, **entry} if run is leader else entry
            elif run is not leader and answer is not None:
                run.answer = {name: value for name, value in answer.items() if name not in FIGURES}
            run.child, run.progress = leader.child, leader.progress
            if run.verdict is None:
                run.verdict = leader.verdict

    def _entries(self, answer: dict[str, Any] | None) -> Iterable[dict[str, Any] | None]:
        """The entry of each run in an answer. It is checked, because a handler can write to the channel, too."""
        found = (answer or {}).get(MEMBERS)
        if not isinstance(found, list) or len(found) != len(self.members):
            return [None] * len(self.members)
        return [entry if isinstance(entry, dict) else None for entry in found]

    def cancel(self, run: Running, by: str) -> bool:
        """Take note that a run of the called batch is cancelled; returns whether the batch is to be ended.

        The others go on. If this run succeeds with them, it has succeeded; if not, it is not retried (`settle`).
        """
        self.cancelled[run] = by
        if self.is_needed:
            return False
        for member, user in self.cancelled.items():
            member.verdict = Cancelled(user)
        return True

    @property
    def is_needed(self) -> bool:
        """Whether this process still owns a run that is not cancelled."""
        return any(not run.fenced and run not in self.cancelled for run in self.members)
