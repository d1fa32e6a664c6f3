"""The test kills producers while they send a replay. Each execution is sent exactly once."""

from __future__ import annotations

import signal
import uuid

import pytest
from django.contrib.admin.models import LogEntry
from django.utils import timezone as clock

from scheduling.broker.database import DatabaseBroker
from scheduling.inbox import replay
from scheduling.models import SchedulerExecution
from tests.factories import ManualExecutionFactory, UserFactory
from tests.support import Commands, wait_for

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]

COUNT = 3_000


def test_a_replay_is_complete_after_kills_of_producers(commands: Commands) -> None:
    rows = ManualExecutionFactory.bulk(
        COUNT, state="failed", wake_at=None, attempt=4, error_class="E", finished_at=clock.now()
    )
    chunks = ([(row.pk, 4) for row in rows[first : first + 500]] for first in range(0, COUNT, 500))
    made = replay.start(uuid.uuid4(), chunks, DatabaseBroker(), UserFactory(), "these")
    assert made is not None
    SchedulerExecution.objects.filter(pk=made.canary).update(state="succeeded")

    def sent() -> int:
        made.refresh_from_db()
        return made.sent

    kills = 0
    while sent() < COUNT:
        before = made.sent
        producers = [commands.start("run_scheduler"), commands.start("run_scheduler")]
        wait_for(lambda before=before: sent() > before, "the next batches are sent")
        for producer in producers:
            commands.stop(producer, signal.SIGKILL)
            kills += 1
    assert kills >= 2
    assert (made.state, made.sent, made.skipped, made.position) == ("done", COUNT, 0, COUNT)
    assert SchedulerExecution.objects.filter(state="queued", retry_base=4, attempt=4).count() == COUNT - 1
    # Each execution has exactly one log entry, so it was sent once.
    entries = LogEntry.objects.filter(change_message=f"republish: replay {made.pk}")
    assert entries.count() == entries.values("object_id").distinct().count() == COUNT
