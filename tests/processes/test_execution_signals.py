"""Each start, success and skip is told once, after the commit, by the process that docs/signals.md names."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone as clock

from scheduling.api import run
from scheduling.broker import get_broker
from scheduling.execution.claim import claim_due
from scheduling.execution.run_now import run_now
from scheduling.models import SchedulerExecution
from scheduling.signals import execution_failed, execution_skipped, execution_started, execution_succeeded
from scheduling.testing import drain
from tests.factories import ManualExecutionFactory, SchedulerFactory, due
from tests.support import Commands

SIGNALS = {
    "started": execution_started,
    "succeeded": execution_succeeded,
    "skipped": execution_skipped,
    "failed": execution_failed,
}

Heard = list[tuple[str, dict[str, Any]]]


@pytest.fixture
def heard() -> Iterator[Heard]:
    """Collect the name and the arguments of each signal."""
    found: Heard = []
    receivers = []
    for name, signal in SIGNALS.items():

        def hear(signal: object, sender: object, name: str = name, **facts: Any) -> None:
            found.append((name, facts))

        signal.connect(hear)
        receivers.append((signal, hear))
    yield found
    for signal, receiver in receivers:
        signal.disconnect(receiver)


@pytest.mark.django_db
def test_a_run_is_told_at_its_start_and_at_its_end(heard: Heard) -> None:
    made = run("tests.noop")
    drain()
    (first, started), (last, succeeded) = heard
    row = SchedulerExecution.objects.get(pk=made.id)
    own = {
        "execution_id": row.pk, "scheduler_id": None, "type": "worker", "target_id": row.target_id,
        "target_name": "tests.noop", "attempt": 1,
    }  # fmt: skip
    assert (first, started) == ("started", own | {"started_at": row.started_at})
    assert (last, succeeded) == ("succeeded", own | {"finished_at": row.finished_at})


@pytest.mark.django_db(transaction=True)
def test_missed_and_left_out_occurrences_are_told_as_skipped_once(heard: Heard) -> None:
    now = clock.now()
    missed = due(SchedulerFactory(schedule="* * * * *", timezone="UTC"), now - timedelta(minutes=30))
    alone = SchedulerFactory(rare=True, overlap="skip")
    run_now(alone, get_broker(), by="ann")
    heard.clear()
    claim_due(now, embedded=True)
    for seconds in (40, 30):
        due(alone, now - timedelta(seconds=seconds))
        claim_due(now, embedded=True)
    assert {name for name, _facts in heard} == {"skipped"}
    first, second = (facts for _name, facts in heard)
    rows = SchedulerExecution.objects.filter(state="skipped").in_bulk()
    assert (first["scheduler_id"], second["scheduler_id"]) == (missed.pk, alone.pk)
    assert first["missed"] == rows[first["execution_id"]].missed == 30
    for facts in (first, second):
        row = rows[facts["execution_id"]]
        assert (facts["reason"], facts["skipped_at"], facts["target_name"]) == (row.reason, now, row.target_name)


@pytest.mark.django_db(transaction=True)
def test_nothing_is_told_of_what_is_rolled_back(heard: Heard) -> None:
    due(SchedulerFactory(schedule="* * * * *", timezone="UTC"), clock.now() - timedelta(minutes=30))
    with transaction.atomic():
        claim_due(clock.now(), embedded=True)
        transaction.set_rollback(True)
    assert heard == []


@pytest.mark.django_db
def test_an_error_of_a_receiver_changes_nothing(heard: Heard, caplog: pytest.LogCaptureFixture) -> None:
    def broken(**_: Any) -> None:
        raise KeyError("colour")

    for signal in (execution_started, execution_succeeded):
        signal.connect(broken)
    try:
        made = run("tests.noop")
        drain()
    finally:
        for signal in (execution_started, execution_succeeded):
            signal.disconnect(broken)
    assert SchedulerExecution.objects.get(pk=made.id).state == "succeeded"
    assert [name for name, _facts in heard] == ["started", "succeeded"]
    assert "A receiver of execution_started raised" in caplog.text


@pytest.mark.processes
@pytest.mark.any_database
@pytest.mark.django_db(transaction=True)
def test_the_consumer_tells_and_not_its_child(commands: Commands, tmp_path: Path) -> None:
    rows = [
        ManualExecutionFactory(scheduler=SchedulerFactory(rare=True, handler=handler, max_retries=0, params=params))
        for handler, params in (("tests.noop", {}), ("tests.when", {"answer": False}), ("tests.gives_up", {}))
    ]
    heard = tmp_path / "heard.txt"
    consumer = commands.start("run_worker", "--concurrency", "1", "--max-runs", "3", HEARD=str(heard))
    assert consumer.wait(120) == 0, commands.log(consumer)
    lines = [line.split() for line in heard.read_text().splitlines()]
    assert {int(pid) for _word, _pk, pid in lines} == {consumer.pid}
    ends = zip(rows, ("succeeded", "skipped", "failed"), strict=True)
    told = {(word, int(pk)) for word, pk, _pid in lines}
    assert len(lines) == len(told)
    assert told == {("started", row.pk) for row in rows} | {(end, row.pk) for row, end in ends}
