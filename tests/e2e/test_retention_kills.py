"""Two clean-ups at once are killed again and again. In the end, everything old is gone, and nothing else."""

from __future__ import annotations

import random
import signal
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.files.base import ContentFile

from scheduling.models import Artefact, Attempt, Output, Scheduler, SchedulerExecution
from tests.execution.retention import keys, left, make_executions
from tests.factories import SchedulerFactory
from tests.support import Commands, wait_for

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]

COUNT = 600


def test_kills_leave_nothing_half_removed(commands: Commands, settings: Any, tmp_path: Path) -> None:
    settings.MEDIA_ROOT = tmp_path / "media"
    counted, plain = SchedulerFactory(rare=True, keep_count=10), SchedulerFactory(rare=True)
    old = make_executions("succeeded", COUNT, scheduler=plain)
    many = make_executions("succeeded", COUNT, timedelta(days=5), counted)
    kept = make_executions("failed", 20) + make_executions("queued", 20)
    for row in old[::20]:
        artefact = Artefact(execution=row, attempt=1, filename="x.csv", content_type="text/csv")
        artefact.file.save("x.csv", ContentFile(b"1,2\n"))

    def waiting() -> int:
        return len(left(old)) + len(left(many))

    # A pass over so few rows may end before a kill reaches it, so a receiver slows each batch down.
    environment = {"MEDIA_ROOT": str(settings.MEDIA_ROOT), "SLOW_PRUNING": "0.05"}
    kills = 0
    while waiting() > 9:
        before = waiting()
        wanted = max(before - random.randrange(1, 200), 9)
        processes = [commands.start("cleanup_executions", **environment) for _ in range(2)]
        done = [process.poll for process in processes]
        wait_for(lambda: waiting() <= wanted or None not in [poll() for poll in done], "rows are removed")  # noqa: B023
        for process in processes:
            kills += process.poll() is None
            commands.stop(process, signal.SIGKILL)
    code, said = commands.run("cleanup_executions", MEDIA_ROOT=str(settings.MEDIA_ROOT))
    assert code == 0, said
    assert kills >= 4
    assert left(old) == []
    assert left(many) == keys(many[-9:])  # and one newer execution
    assert left(kept) == keys(kept)
    there = set(SchedulerExecution.objects.values_list("pk", flat=True))
    for table in (Attempt, Output):
        assert set(table.objects.values_list("execution", flat=True)) <= there
    assert Artefact.objects.count() == 0
    assert list(settings.MEDIA_ROOT.rglob("*.csv")) == []
    assert Scheduler.objects.filter(pk__in=[counted.pk, plain.pk]).count() == 2
