"""Work: what the steps of one pass share. It judges executions, and removes them in batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from scheduling.core.lifecycle import State
from scheduling.core.retention import RetentionPolicy, Rule, protected_from, rule_for
from scheduling.execution.retention.pace import Pace
from scheduling.execution.retention.policies import Policies
from scheduling.execution.retention.pruned import Pruned
from scheduling.execution.retention.removal import remove, strip
from scheduling.execution.retention.windows import Row

Released = Callable[[Sequence[int]], set[int]]
"""Gets the ids of discarded executions. Returns those whose message is no longer in the failed queue."""

Judged = Mapping[Row, Rule]


@dataclass
class Work:
    """One pass of retention.

    Args:
        catch_up: the catch-up window.
        released: asked before a discarded execution is removed. A sync would make a new row in the inbox for a message
            without a row.
    """

    now: datetime
    policies: Policies
    pace: Pace
    done: Pruned
    catch_up: timedelta
    released: Released
    dry_run: bool

    def rule(self, row: Row, policy: RetentionPolicy, enough: bool = False) -> Rule | None:
        """The rule that removes an execution; see `core.retention.rule_for`."""
        return rule_for(row.facts, policy, self.now, self.catch_up, enough)

    def cutoff(self, days: int | None) -> datetime:
        """The instant before which something is removed after so many days. No age is shorter than the catch-up."""
        protected = protected_from(self.now, self.catch_up)
        return protected if days is None else min(protected, self.now - timedelta(days=days))

    @staticmethod
    def is_young(rows: Iterable[Row], cutoff: datetime) -> bool:
        """Whether all these executions were claimed after the cutoff. Keys grow with time, so a walk may end there.

        One row with a wrong time does not end a walk, because the other rows of the window are still old.
        """
        times = [row.facts.executed_at for row in rows]
        return bool(times) and all(instant is not None and instant >= cutoff for instant in times)

    def apply(self, judged: Judged) -> bool:
        """Remove executions, or only their output, in batches. Returns whether the pass has time to go on."""
        last = self.policies.last_runs(row for row, rule in judged.items() if rule is not Rule.OUTPUT)
        rules: dict[int, Rule] = {}
        for row, rule in judged.items():
            if row.pk not in last:
                rules[row.pk] = rule
            elif only := self.rule(row, RetentionPolicy(None, None, None, self.policies.of(row).output_days)):
                rules[row.pk] = only  # the last result stays, but not its output
        discarded = [row.pk for row in judged if row.facts.state == State.DISCARDED.value and row.pk in rules]
        for pk in self._held(discarded):
            del rules[pk]
        return self._in_batches(rules)

    def _held(self, discarded: Sequence[int]) -> set[int]:
        if self.dry_run or not discarded:
            return set()
        held = set(discarded) - self.released(discarded)
        self.done.held += len(held)
        return held

    def _in_batches(self, rules: Mapping[int, Rule]) -> bool:
        keys = sorted(rules)
        going = self.pace.end_batch()  # the batch that has read these rows
        while keys and going:
            batch, keys = keys[: self.pace.size], keys[self.pace.size :]
            stripped = [pk for pk in batch if rules[pk] is Rule.OUTPUT]
            remove({pk: rules[pk] for pk in batch if rules[pk] is not Rule.OUTPUT}, self.done, dry_run=self.dry_run)
            strip(stripped, self.done, dry_run=self.dry_run)
            going = self.pace.end_batch(len(batch))
        return going
