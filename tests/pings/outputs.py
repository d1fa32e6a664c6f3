"""Runs with output, for tests."""

from __future__ import annotations

import uuid

from django.utils import timezone as clock

from scheduling.core.lifecycle import State
from scheduling.core.pings import Kind
from scheduling.models import Output, SchedulerExecution
from scheduling.pings.rows import Ended, note_ends
from tests.factories import SchedulerExecutionFactory, SchedulerFactory
from tests.pings.healthchecks_server import Healthchecks


def failed_run(check: uuid.UUID, healthchecks: Healthchecks, lines: int) -> SchedulerExecution:
    """Make a failed run with so many lines of output in many rows, and note its end."""
    row = SchedulerFactory(rare=True, ping_url=healthchecks.url(check))
    execution = SchedulerExecutionFactory(scheduler=row, failed=True)
    texts = [f"2026-03-10T12:00:00.000Z OUT line {number} ż\n" for number in range(lines)]
    for sequence, start in enumerate(range(0, lines, 30)):
        Output.objects.create(
            execution=execution, attempt=4, sequence=sequence, text="".join(texts[start : start + 30]),
            created_at=clock.now(),
        )  # fmt: skip
    note_ends([Ended(execution.pk, 4, State.FAILED, [Kind.HEALTHCHECKS])], clock.now())
    return execution
