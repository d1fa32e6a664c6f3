"""What a run knows (release, headers, cancelled), and what its attempt records (release, CPU time, peak memory)."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from scheduling.execution.cancel import cancel
from scheduling.models import Artefact, Attempt, Output, SchedulerExecution
from tests.apps.sample.run_facts import BYTES, CPU_SECONDS
from tests.factories import ManualExecutionFactory, SchedulerFactory
from tests.support import Commands, marks, wait_for

pytestmark = [pytest.mark.processes, pytest.mark.any_database, pytest.mark.django_db(transaction=True)]


def one(handler: str, **params: object) -> SchedulerExecution:
    return ManualExecutionFactory(scheduler=SchedulerFactory(rare=True, handler=handler, max_retries=0, params=params))


def output_of(execution: SchedulerExecution) -> str:
    return "".join(Output.objects.filter(execution=execution).order_by("pk").values_list("text", flat=True))


def test_a_handler_sees_release_and_headers_and_attaches_a_file(commands: Commands, tmp_path: Path) -> None:
    told, died, attached = one("tests.tell_release"), one("tests.die"), one("tests.attach")
    SchedulerExecution.objects.filter(pk=told.pk).update(headers={"trace": "4bf92f", "Authorization": "Bearer hunter2"})
    code, log = commands.run("run_worker", "--max-runs", "3", CRON_RELEASE="r42")
    assert code == 0, log
    assert "release r42" in output_of(told)
    assert "headers 4bf92f •••••• 2, read-only" in output_of(told)
    releases = set(Attempt.objects.values_list("execution", "release"))
    assert releases == {(run.pk, "r42") for run in (told, died, attached)}
    artefact = Artefact.objects.get()
    assert (artefact.execution_id, artefact.attempt, artefact.size, artefact.rows) == (attached.pk, 1, 6, None)
    assert artefact.filename == "Invoice_7.pdf"
    assert artefact.is_result
    assert (tmp_path / "media" / artefact.file.name).read_bytes() == b"a page"
    assert "This attempt has a file 'Invoice_7.pdf' already." in output_of(attached)


def test_an_attempt_records_its_own_resources_also_in_a_used_child(commands: Commands) -> None:
    runs = [one(handler) for handler in ("tests.use_resources", "tests.noop", "tests.burn", "tests.die")]
    code, log = commands.run("run_worker", "--concurrency", "1", "--max-runs", str(len(runs)))
    assert code == 0, log
    used, idle, burnt, died = (Attempt.objects.get(execution=run) for run in runs)
    assert used.pid == idle.pid == burnt.pid
    for attempt in (used, burnt):
        assert attempt.cpu_ms is not None
        assert attempt.cpu_ms >= CPU_SECONDS * 1000, attempt
    assert idle.cpu_ms is not None
    assert idle.cpu_ms < CPU_SECONDS * 1000
    assert (died.cpu_ms, died.peak_memory_kb) == (None, None)
    if sys.platform == "linux":
        assert used.peak_memory_kb is not None
        assert idle.peak_memory_kb is not None
        assert used.peak_memory_kb > BYTES // 1024 > idle.peak_memory_kb > 0


def test_a_handler_that_looks_ends_by_itself_and_another_one_is_interrupted(commands: Commands, tmp_path: Path) -> None:
    names = ("tests.until_cancelled", "tests.looks_once", "tests.never_looks")
    asked, once, never = runs = [one(name, directory=str(tmp_path)) for name in names]
    commands.start("run_worker", "--concurrency", "3")
    wait_for(lambda: all(marks(tmp_path, run.pk) for run in runs), "the runs have started")
    for run in runs:
        assert cancel(run.pk, "ann") == "asked"
    over = Attempt.objects.filter(outcome="cancelled")
    wait_for(lambda: over.count() == 3, "the runs are cancelled")
    assert "cancelled before: False" in output_of(asked)
    assert "ended by itself" in output_of(asked)
    assert "its handler has 5 s to end" in output_of(once)
    for run in (once, never):
        assert "interrupted, cancelled: True" in output_of(run)
    assert "to end" not in output_of(never)
    assert set(SchedulerExecution.objects.values_list("state", "reason")) == {("cancelled", "Cancelled by ann.")}
