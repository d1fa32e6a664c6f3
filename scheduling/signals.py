"""Django signals for a project's own code. Receivers run in the process that recorded the fact."""

from __future__ import annotations

from django.dispatch import Signal

execution_failed = Signal()
"""An execution failed for good, sent once, by the winner of the settle.

Arguments: `execution_id: int`, `scheduler_id: int | None`, `type: str`, `target_id: int | None`,
`target_name: str`, `attempts: int`, `error_class: str`, `error_message: str`, `reason: str`.
A receiver that raises is logged and stops nothing.
"""

executions_pruned = Signal()
"""Retention is about to remove executions. Argument: `ids: list[int]`.

Whoever keeps files or rows for them removes them now.
"""

executions_replayed = Signal()
"""A replay has republished executions. Arguments: `executions: list`, `replay`.

Sent inside the transaction that moves them: a receiver that raises undoes it, and it is tried again.
"""
