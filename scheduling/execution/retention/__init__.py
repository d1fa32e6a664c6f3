"""Removes old executions, their output, spent one-time schedules, and the records of processes and replays."""

from scheduling.execution.retention.prune import prune
from scheduling.execution.retention.pruned import Pruned

__all__ = ["Pruned", "prune"]
