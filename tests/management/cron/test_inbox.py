"""`cron failed`, `republish` and `discard`."""

from __future__ import annotations

import shlex
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import InterfaceError
from django.utils import timezone as clock

from scheduling.broker import BrokerError
from scheduling.inbox import actions
from scheduling.management.cron import inbox_act
from scheduling.models import FailedExecution, Replay, SchedulerExecution
from scheduling.operations.batches import RequestLimits
from scheduling.operations.execution_shapes import ExecutionShape
from scheduling.operations.failure_shapes import DoneShape, GroupShape
from tests.factories import FailedExecutionFactory, SchedulerFactory, UserFactory
from tests.management.cron.calls import cron

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def boss() -> None:
    UserFactory(username="boss", superuser=True)


def states() -> list[str]:
    return list(SchedulerExecution.objects.order_by("pk").values_list("state", flat=True))


def test_the_inbox_as_a_list_and_by_group() -> None:
    team = Group.objects.create(name="team")
    first, second = FailedExecutionFactory(), FailedExecutionFactory()
    other = FailedExecutionFactory(error_class="KeyError", error_message="'\x1b[2J'", group=team)
    listed = cron("failed", "--json", "--limit", 2).json
    assert (listed["kind"], listed["next"]) == ("failures", second.pk)
    assert [ExecutionShape.model_validate(one).id for one in listed["failures"]] == [other.pk, second.pk]
    assert [row["id"] for row in cron("failed", "--json", "--error", "ValueError").json["failures"]] == [
        second.pk, first.pk,
    ]  # fmt: skip
    groups = [GroupShape.model_validate(one) for one in cron("failed", "--groups", "--json").json["groups"]]
    assert [(group.count, group.latest) for group in groups] == [(2, second.pk), (1, other.pk)]
    assert groups[0].targets == {"worker tests.noop": 2}
    shown = cron("failed", "--groups")
    assert "KeyError: '\\x1b[2J'" in shown.out
    assert "\x1b" not in shown.out + cron("failed").out

    UserFactory(username="ann", permissions=["scheduling.view_failedexecution"])
    seen = cron("failed", "--as", "ann", "--json", "--limit", 1).json
    assert ([row["id"] for row in seen["failures"]], seen["next"]) == ([second.pk], second.pk)
    assert len(cron("failed", "--as", "ann", "--groups", "--json").json["groups"]) == 1
    assert cron("republish", "--all", "--as", "ann").code == 4
    assert cron("failed", "--schedule", "nothing").code == 3


def test_the_command_that_a_dry_run_prints_does_the_work() -> None:
    schedule = SchedulerFactory(name="it's here")
    for _number in range(3):
        FailedExecutionFactory(scheduler=schedule)
    dry = cron("republish", "--schedule", "it's here", "--minutes", 5)
    assert (dry.code, states()) == (0, ["failed"] * 3)
    *_words, line = dry.out.splitlines()
    command = shlex.split(line)
    assert command[:3] == ["manage.py", "cron", "republish"]
    assert command[-4:] == ["--count", "3", "--minutes", "5"]
    FailedExecutionFactory(scheduler=schedule)
    late = cron(*command[2:])
    assert (late.code, states()) == (4, ["failed"] * 4)  # a failure has come since
    assert cron(*command[2:], "--count", 4).code == 0
    assert set(states()) == {"queued"}
    assert len({row.wake_at for row in SchedulerExecution.objects.all()}) == 4


def test_ids_a_count_and_a_reason() -> None:
    rows = [FailedExecutionFactory() for _number in range(3)]
    assert cron("discard", rows[0].pk).code == 0
    assert cron("discard", rows[0].pk, "--yes").code == 4  # a reason is missing
    assert cron("republish", rows[0].pk, "--all", "--yes").code == 4
    assert cron("republish", "--yes").code == 4
    assert states() == ["failed"] * 3
    done = cron("discard", rows[0].pk, "--yes", "--reason", "known", "--json")
    assert DoneShape.model_validate(done.json["done"]).done == [rows[0].pk]
    rows[0].refresh_from_db()
    assert (rows[0].state, "known" in rows[0].reason) == ("discarded", True)
    differs = cron("republish", rows[1].pk, rows[2].pk, "--count", 1, "--json")
    assert (differs.code, differs.json["code"], states().count("failed")) == (4, "COUNT_DIFFERS", 2)
    assert cron("republish", "--all", "--count", 1).code == 4
    canary = cron("republish", "--all", "--yes", "--canary")
    replay = Replay.objects.get()
    assert (canary.code, f"Replay {replay.pk}" in canary.out) == (0, True)


def test_many_failures_are_done_in_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RequestLimits, "chunk_rows", 1)
    monkeypatch.setattr(inbox_act, "PASS_SECONDS", 0.0)
    for _number in range(3):
        FailedExecutionFactory()
    done = cron("republish", "--all", "--yes")
    assert (done.code, done.out) == (0, "Republished 3 of 3 failures.\n")
    assert done.err.splitlines() == ["1 done, 2 left …", "2 done, 1 left …"]
    assert set(states()) == {"queued"}
    assert RequestLimits.seconds == 20.0


@pytest.mark.parametrize("bound", [[], ["--count", 99]])
def test_the_passes_share_one_spread(monkeypatch: pytest.MonkeyPatch, bound: list[object]) -> None:
    monkeypatch.setattr(RequestLimits, "chunk_rows", 2)
    monkeypatch.setattr(inbox_act, "PASS_SECONDS", 0.0)
    FailedExecutionFactory.create_batch(5)
    before = clock.now()
    done = cron("republish", "--all", "--yes", "--minutes", 10, *bound)
    assert (done.code, len(done.err.splitlines())) == (0, 2)
    starts = [row.wake_at for row in SchedulerExecution.objects.order_by("pk")]
    spent = clock.now() - before
    for place, start in enumerate(starts):
        planned = before + place * timedelta(minutes=2)
        assert start is not None
        assert planned <= start <= planned + spent, place


@pytest.mark.parametrize(
    ("error", "code"), [(BrokerError("gone"), "BROKER_AWAY"), (InterfaceError(2006, "closed"), "DATABASE_AWAY")]
)
@pytest.mark.parametrize("act", ["republish", "discard"])
def test_what_was_done_is_told_although_a_later_pass_broke(
    monkeypatch: pytest.MonkeyPatch, act: str, error: Exception, code: str
) -> None:
    monkeypatch.setattr(RequestLimits, "chunk_rows", 2)
    FailedExecutionFactory.create_batch(8)
    real, passes = getattr(actions, act), [2]

    def breaking(*given: Any, **named: Any) -> Any:
        if not passes[0]:
            raise error
        passes[0] -= 1
        return real(*given, **named)

    monkeypatch.setattr(actions, act, breaking)
    words = [act, "--all", "--yes", "--json", *(["--reason", "x"] if act == "discard" else [])]
    for seconds in (0.0, 20.0):  # the error comes in a later pass, and within the first pass
        passes[0] = 1 if seconds else 2
        monkeypatch.setattr(inbox_act, "PASS_SECONDS", seconds)
        before = set(FailedExecution.objects.filter(state="failed").values_list("pk", flat=True))
        broken = cron(*words)
        after = set(FailedExecution.objects.filter(state="failed").values_list("pk", flat=True))
        assert (broken.code, broken.json["kind"], broken.json["code"]) == (5, "refused", code)
        assert set(broken.json["done"]) == before - after
        assert f"Done before that: {len(before - after)}." in broken.err
        assert len(before - after) == (2 if seconds else 4)
