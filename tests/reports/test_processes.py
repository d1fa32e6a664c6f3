"""The tests start a consumer as a process. The consumer runs the failure review and the cleanup."""

from __future__ import annotations

from datetime import timedelta
from hashlib import sha256
from io import BytesIO
from pathlib import Path

import pytest
from django.test import Client
from django.utils import timezone as clock
from python_calamine import CalamineWorkbook

from reports.models import Report
from scheduling.broker.database import DatabaseBroker
from scheduling.execution.run_now import run_now
from scheduling.handlers.targets import sync_targets
from scheduling.models import Artefact, Output, Scheduler, SchedulerExecution, Worker
from tests.reports.support import execution_of, failed
from tests.support import Commands, wait_for

pytestmark = pytest.mark.processes


def ended(execution: SchedulerExecution) -> SchedulerExecution:
    """Wait until the execution has ended. Return the execution."""

    def over() -> bool:
        execution.refresh_from_db()
        return execution.finished_at is not None

    wait_for(over, "the end of the run")
    return execution


def run(commands: Commands, row: Scheduler, media: Path) -> SchedulerExecution:
    """Start a consumer, run a schedule now, and check that the execution succeeded. Return the execution."""
    commands.start("run_worker", MEDIA_ROOT=str(media))
    execution = ended(run_now(row, DatabaseBroker(), by="test"))
    assert execution.state == "succeeded", (execution.error_class, execution.error_message)
    return execution


def test_the_file_of_the_failure_review_can_be_downloaded(
    commands: Commands, embedded: DatabaseBroker, media: Path, admin_client: Client
) -> None:
    sync_targets()  # a flush of the database after an earlier test has deleted the targets
    failed(clock.now().replace(microsecond=0), error="=cmd|' /C calc'!A0")
    row = Scheduler.objects.create(
        report=Report.objects.get(controller="failure_review"),
        schedule="0 6 * * 1",
        params={"days": 3, "options_interface": {"delivery": {"instant": False}}},
    )
    execution = run(commands, row, media)
    artefacts = list(Artefact.objects.of([execution.pk]).results())
    assert sorted(artefact.filename.rsplit(".", 1)[1] for artefact in artefacts) == ["csv", "jsonl"]
    csv = next(artefact for artefact in artefacts if artefact.filename.endswith(".csv"))
    response = admin_client.get(f"/admin/scheduling/artefact/{csv.pk}/download/")
    lines = b"".join(response.streaming_content).decode("utf-8-sig").splitlines()
    response.close()
    assert lines[0].startswith("date,type,target,scheduler_id")
    assert "'=cmd|' /C calc'!A0" in lines[1]


def test_a_schedule_chooses_format_and_name_of_the_file(
    commands: Commands, embedded: DatabaseBroker, media: Path, admin_client: Client
) -> None:
    sync_targets()
    options = {"delivery": {"format": "xlsx", "filename": "failures of today"}}
    row = Scheduler.objects.create(
        report=Report.objects.get(controller="failure_review"),
        schedule="0 6 * * 1",
        params={"options_interface": options},
    )
    execution = run(commands, row, media)
    artefact = Artefact.objects.of([execution.pk]).get()
    response = admin_client.get(f"/admin/scheduling/artefact/{artefact.pk}/download/")
    content = b"".join(response.streaming_content)
    response.close()
    assert response["Content-Disposition"] == 'attachment; filename="failures_of_today.xlsx"'
    assert sha256(content).hexdigest() == artefact.checksum
    workbook = CalamineWorkbook.from_filelike(BytesIO(content))
    assert workbook.get_sheet_by_name("Sheet1").to_python()[0][:3] == ["date", "type", "target"]


def test_the_cleanup_runs_as_a_schedule(commands: Commands, media: Path) -> None:
    sync_targets()
    execution_of("succeeded", finished_at=clock.now() - timedelta(days=40))
    row = Scheduler.objects.create(
        worker=Worker.objects.get(name="run_command"),
        schedule="0 3 * * *",
        params={"command": "cleanup_executions", "args": ["--days", "30"]},
    )
    execution = run(commands, row, media)
    text = "".join(Output.objects.filter(execution=execution).order_by("sequence").values_list("text", flat=True))
    assert "manage.py cleanup_executions --days 30" in text
    assert "Deleted 1 execution records older than 30 days" in text
