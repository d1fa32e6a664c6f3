"""Django signals for a project's own code. A receiver runs in the process that sends the signal."""

from __future__ import annotations

from django.dispatch import Signal

execution_failed = Signal()
"""An execution failed for good. The process that recorded the failure sends this signal once, after its transaction.

It is sent for every way to fail: the last attempt failed, the broker gave up the message, a message from outside was
found in the failed queue, or the row cannot be used.

Arguments: `execution_id: int`, `scheduler_id: int | None`, `type: str`, `target_id: int | None`, `target_name: str`,
`attempts: int`, `retry_count: int`, `error_class: str`, `error_message: str`, `reason: str`, and `failed_at: datetime`
in UTC. Also, as in the schedule service: `scheduled_job_id: int` (the same as `execution_id`), `last_error: str` (class
and message), `topic: str` and `metadata: dict`; both are empty for a run that is no event. `type` and `target_name` are
empty if a message or a row cannot be read.
If a receiver raises an error, the error is logged and the other receivers still run.
"""

execution_started = Signal()
"""A consumer has started an attempt. The consumer sends this signal for each attempt, also for each retry.

Arguments: `execution_id: int`, `scheduler_id: int | None`, `type: str`, `target_id: int | None`, `target_name: str`,
`attempt: int`, and `started_at: datetime` in UTC.
"""

execution_succeeded = Signal()
"""An execution has succeeded. The consumer of its last attempt sends this signal once, after its transaction.

Arguments: those of `execution_started`, with `finished_at: datetime` instead of `started_at`.
"""

execution_skipped = Signal()
"""An occurrence, or a run that was asked for, is skipped. The process that recorded it sends this signal once.

Arguments: `execution_id: int`, `scheduler_id: int | None`, `type: str`, `target_id: int | None`, `target_name: str`,
`reason: str`, `missed: int` (how many missed occurrences the row counts), and `skipped_at: datetime` in UTC.
If further occurrences are left out for the same reason, they are counted in the same row without another signal.
"""

event_without_listener = Signal()
"""An event was delivered to no listener, because none is registered for its topic. Its execution has succeeded.

The child that runs the event sends this signal. Arguments: `execution_id: int` and `topic: str`.
"""

executions_pruned = Signal()
"""Retention is about to remove executions. Argument: `ids: list[int]`.

An app that keeps files or rows for these executions must remove these files and rows now.
"""

executions_replayed = Signal()
"""A replay has republished executions. Arguments: `executions: list`, `replay`.

The signal is sent inside the transaction that republishes the executions. If a receiver raises an error, the
transaction is rolled back. After an error in a sweep, the error is logged, the other replays go on, and the next sweep
republishes the executions and sends the signal again.
"""
