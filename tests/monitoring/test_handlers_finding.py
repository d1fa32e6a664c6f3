"""The finding about a deploy that did not finish: consumers of one queue know different handlers."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone as clock

from scheduling.models import HandlerSet, Process
from scheduling.monitoring.findings import processes
from scheduling.monitoring.findings.finding import Finding, Level
from scheduling.monitoring.findings.present import Present
from tests.factories import HandlerSetFactory, ProcessFactory

pytestmark = pytest.mark.django_db


def found() -> list[Finding]:
    return [finding for finding in processes.examine(Present(clock.now())) if finding.check == "handlers"]


@pytest.fixture
def versions() -> tuple[HandlerSet, HandlerSet]:
    """The handlers of an old and of a new version."""
    old = HandlerSetFactory(known={"tests.same": "a", "tests.changed": "a", "tests.removed": "a"})
    return old, HandlerSetFactory(known={"tests.same": "a", "tests.changed": "b", "tests.added": "a"})


def consumer(known: HandlerSet | None, minutes: float, **columns: Any) -> Process:
    started = clock.now() - timedelta(minutes=minutes)
    row: Process = ProcessFactory(handler_set=known, started_at=started, **columns)
    return row


def test_the_older_consumers_are_named_with_the_handlers(versions: tuple[HandlerSet, HandlerSet]) -> None:
    old, new = versions
    left = [consumer(old, 5000), consumer(old, 2)]
    consumer(new, 11)
    consumer(new, 1)
    (finding,) = found()
    assert finding.level is Level.WARN
    assert finding.seen == ("Consumers of the queue “main” have known different handlers for 11 min. Older ones: 2.")
    about = "does not know worker tests.added; also knows worker tests.removed; "
    about += "has other parameters of worker tests.changed"
    assert [(row.container_id in named.name, named.about) for row, named in zip(left, finding.rows, strict=True)] == [
        (True, about), (True, about),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "columns", [{"silent": True}, {"stopped": True}, {"producer": True}, {"info": {"queue": "standalone"}}], ids=str
)
def test_other_processes_are_no_unfinished_deploy(versions: tuple[HandlerSet, HandlerSet], columns: Any) -> None:
    old, new = versions
    consumer(old, 5000, **columns)
    consumer(None, 5000)
    consumer(new, 60)
    assert found() == []


def test_a_deploy_may_take_ten_minutes(versions: tuple[HandlerSet, HandlerSet]) -> None:
    old, new = versions
    consumer(old, 5000)
    consumer(new, 9)
    assert found() == []
