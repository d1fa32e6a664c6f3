"""Functions that make reports, `Run` objects, executions and artefacts for tests."""

from __future__ import annotations

import io
import uuid
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.core.files.base import ContentFile

from reports.controller import ReportController, Row
from reports.renderers import Renderer
from scheduling.core.fingerprint import fingerprint
from scheduling.handlers import Run
from scheduling.models import Artefact, Attempt, SchedulerExecution
from tests.support import NOON


class Numbers(ReportController):
    """Two columns and two rows."""

    columns = ("name", "total")

    def rows(self, params: Any, run: Run) -> Iterator[Row]:
        yield "one", 1
        yield {"total": 2, "name": "two"}


def run_of(execution: SchedulerExecution | None = None, **facts: Any) -> Run:
    """Return a `Run` object for the current attempt of an execution. `facts` replace the default attributes."""
    values: dict[str, Any] = {
        "execution_id": execution.pk if execution else 1,
        "execution_key": execution.execution_key if execution else "manual-1",
        "attempt": max(1, execution.attempt) if execution else 1,
        "retry_count": 0,
        "is_last_attempt": False,
        "scheduled_at": NOON,
        "type": "report",
        "name": "numbers",
        **facts,
    }
    return Run(**values)


def execution_of(state: str = "running", **columns: Any) -> SchedulerExecution:
    """Store and return an execution of a report."""
    values: dict[str, Any] = {
        "execution_key": f"manual-{uuid.uuid4()}",
        "scheduled_at": NOON,
        "trigger": "manual",
        "type": "report",
        "target_name": "numbers",
        "executed_at": NOON,
        "container_id": "test",
        "state": state,
        "attempt": 1,
        **columns,
    }
    return SchedulerExecution.objects.create(**values)


def failed(at: datetime, error: str = "no route", **columns: Any) -> SchedulerExecution:
    """Store and return an execution with two failed attempts. The second attempt failed at `at`."""
    values = {
        "error_class": "ConnectionError",
        "error_message": error,
        "fingerprint": fingerprint("ConnectionError", error),
        "attempt": 2,
        "finished_at": at,
        "type": "worker",
        "target_name": "sync",
        **columns,
    }
    execution = execution_of(values.pop("state", "failed"), **values)
    for number, end in ((1, at - timedelta(minutes=1)), (2, at)):
        Attempt.objects.create(
            execution=execution, number=number, started_at=end, finished_at=end, consumer="test", outcome="failed"
        )
    return execution


def artefact_of(execution: SchedulerExecution, attempt: int = 1, **columns: Any) -> Artefact:
    """Store and return an artefact with a small file."""
    artefact = Artefact(
        execution=execution,
        attempt=attempt,
        **{"filename": "numbers.csv", "content_type": "text/csv; charset=utf-8", "size": 3, "rows": 1, **columns},
    )
    artefact.file.save("numbers.csv", ContentFile(b"a,b"), save=False)
    artefact.save()
    return artefact


def rendered(kind: type[Renderer], columns: Sequence[str], *rows: Sequence[Any], **options: Any) -> bytes:
    """Return the content of the file that the renderer writes for these rows."""
    file = io.BytesIO()
    with kind(file, columns, **options) as renderer:
        for row in rows:
            renderer.write(row)
        renderer.finish()
    return file.getvalue()
