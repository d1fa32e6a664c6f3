"""Pruned: the result of one pass of retention."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from scheduling.core.retention import Rule


@dataclass
class Pruned:
    """How many rows one pass of retention removed, or would remove.

    Args:
        rules: how many executions (for `Rule.ONE_TIME`: schedules) each rule removed. For `Rule.OUTPUT`, the number of
            executions that lost only their output and artefacts.
        attempts, outputs, processes, handler_sets, replays, backfills, refused_rows, breakers, limits, tokens, answers,
            tallies, alerts, revisions: how many rows of other tables were removed.
        held: how many executions stay until the failed queue no longer has their message, or until the queue can be
            read.
        complete: False if the pass ran out of time.
        slowest: the duration of the slowest batch in seconds.
    """

    rules: Counter[Rule] = field(default_factory=Counter)
    attempts: int = 0
    outputs: int = 0
    processes: int = 0
    handler_sets: int = 0
    replays: int = 0
    backfills: int = 0
    refused_rows: int = 0
    breakers: int = 0
    limits: int = 0
    tokens: int = 0
    answers: int = 0
    tallies: int = 0
    alerts: int = 0
    revisions: int = 0
    held: int = 0
    complete: bool = True
    slowest: float = 0.0

    @property
    def executions(self) -> int:
        """How many executions were removed."""
        return sum(self.rules[rule] for rule in (Rule.SUCCESS, Rule.ENDED, Rule.FAILED, Rule.COUNT))
