"""`run.idempotency_key`: the same in each attempt of an execution, and in no other execution."""

from __future__ import annotations

from django.utils import timezone as clock

from scheduling.handlers import Run


def key(execution_id: int, execution_key: str, attempt: int = 1) -> str:
    run = Run(execution_id=execution_id, execution_key=execution_key, attempt=attempt, retry_count=0,
              is_last_attempt=False, scheduled_at=clock.now())  # fmt: skip
    return run.idempotency_key


def test_attempts_share_it_and_executions_do_not() -> None:
    at_eight = "cron-2026-12-12-8-0"
    assert key(7, at_eight) == key(7, at_eight, attempt=2) == "7-cron-2026-12-12-8-0"
    other_schedule, after_a_restore = key(8, at_eight), key(7, "cron-2026-12-13-8-0")
    assert len({key(7, at_eight), other_schedule, after_a_restore}) == 3


def test_it_is_short_enough_for_a_header() -> None:
    assert len(key(2**63 - 1, "x" * 64)) <= 85
