"""`cron run`, `rerun`, `runs`, `output` and `cancel`. What waits is run by `drain`, as consumers would."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.contrib.auth.models import Group
from django.utils import timezone as clock

from scheduling.management.cron.console import Console
from scheduling.models import Attempt, Scheduler, SchedulerExecution
from scheduling.operations.execution_shapes import ExecutionDetail, ExecutionShape
from scheduling.operations.output import OutputLimits
from scheduling.testing import drain
from tests.factories import OutputFactory, SchedulerExecutionFactory, SchedulerFactory, UserFactory
from tests.management.cron.calls import cron

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def boss() -> None:
    UserFactory(username="boss", superuser=True)


@pytest.fixture
def consumer(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """While a command waits, everything that is due runs."""
    monkeypatch.setattr(Console, "pause", lambda _console, _seconds: drain(raise_errors=False))
    return


def test_one_run_shows_the_traceback_of_its_last_failed_attempt(consumer: None) -> None:
    SchedulerFactory(name="bad", rare=True, handler="tests.fail", max_retries=0)
    execution = int(cron("run", "bad").out)
    drain(raise_errors=False)
    cron("republish", str(execution), "--yes")
    drain(raise_errors=False)
    lines = cron("runs", str(execution)).out.splitlines()
    assert lines.count("Traceback of attempt 2:") == 1
    shown = lines[lines.index("Traceback of attempt 2:") + 1 :]
    assert shown[0] == "Traceback (most recent call last):"
    assert shown[-1] == "RuntimeError: cannot reach the service, attempt 2"
    Attempt.objects.filter(execution=execution).update(traceback="one\x1b[31m\ntwo")
    assert cron("runs", str(execution)).out.splitlines()[-2:] == [r"one\x1b[31m", "two"]
    Attempt.objects.filter(execution=execution).update(traceback="")
    assert "Traceback" not in cron("runs", str(execution)).out


def test_a_run_is_started_and_waited_for(consumer: None) -> None:
    SchedulerFactory(name="good", rare=True, handler="tests.give", params={"value": 1})
    SchedulerFactory(name="bad", rare=True, handler="tests.fail", max_retries=0)
    started = cron("run", "good")
    row = SchedulerExecution.objects.get(pk=int(started.out))
    assert (started.code, row.state, row.requested_by) == (0, "queued", "boss, command")
    waited = cron("run", "good", "--wait", "--param", "value=2", "--json")
    found = ExecutionDetail.model_validate(waited.json["execution"])
    assert (waited.code, found.state, found.result) == (0, "succeeded", 2)
    failed = cron("run", "bad", "--follow")
    assert failed.code == 1
    assert "failed: " in failed.err
    once = cron("run", "--worker", "tests.give", "--params", '{"value": 3}', "--wait", "--json").json["execution"]
    assert (once["schedule_id"], once["result"], once["target"]["name"]) == (None, 3, "tests.give")
    again = cron("rerun", found.id, "--wait", "--json").json["execution"]
    assert (again["result"], again["id"] != found.id) == (2, True)
    assert cron("rerun", found.id, "--param", "value=4", "--wait", "--json").json["execution"]["result"] == 4


def test_a_run_that_nothing_runs_is_not_done() -> None:
    SchedulerFactory(name="good", rare=True)
    waited = cron("run", "good", "--wait", "0")
    assert (waited.code, waited.err) == (1, "It is not over yet: queued.\n")
    assert waited.out.strip().isdecimal()
    SchedulerFactory(name="alone", rare=True, overlap="skip")
    cron("run", "alone")
    skipped = cron("run", "alone", "--json")
    assert (skipped.code, skipped.json["code"]) == (4, "CONFLICT")
    assert cron("run", "--worker", "tests.unknown").code == 3
    assert cron("run", "good", "--param", "unknown=1").code == 4


def test_a_user_who_may_not_see_runs_may_start_one_and_no_more() -> None:
    SchedulerFactory(name="good", rare=True)
    UserFactory(username="ann", permissions=["scheduling.view_scheduler", "scheduling.run_scheduler"])
    for waiting in (["--wait", "0"], ["--follow"], ["--json"]):
        assert cron("run", "good", "--as", "ann", *waiting).code == 4
    assert not SchedulerExecution.objects.exists()
    assert cron("run", "good", "--as", "ann").code == 0


def test_output_is_printed_whole_and_without_control_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OutputLimits, "shown_lines", 2)
    row = SchedulerExecutionFactory(succeeded=True)
    for number in range(3):
        stamp = "2026-03-10T12:00:00.000Z"
        OutputFactory(
            execution=row, attempt=1, sequence=number, text=f"{stamp} OUT a\x1b[2J{number}\n{stamp} ERROR b\n"
        )
    whole = cron("output", row.pk)
    assert (whole.code, len(whole.out.splitlines())) == (0, 6)
    assert "\x1b" not in whole.out
    assert "a\\x1b[2J2" in whole.out
    assert cron("output", row.pk, "--follow").out == whole.out
    assert len(cron("output", row.pk, "--level", "error").out.splitlines()) == 3
    last = cron("output", row.pk, "--tail", 1)
    assert (last.out, last.err) == ("2026-03-10T12:00:00.000Z ERROR b\n", "Earlier lines are left out.\n")
    page = cron("output", row.pk, "--json").json
    assert (page["kind"], page["cut"], [group["attempt"] for group in page["groups"]]) == ("output", True, [1])
    rest = cron("output", row.pk, "--json", "--after", page["cursor"]).json
    assert [line[-2:] for group in rest["groups"] for line in group["lines"]] == ["J1", " b"]
    assert cron("output", row.pk, "--attempt", 2).out == ""
    assert cron("output", "x").code == 3


def test_following_prints_each_line_once(monkeypatch: pytest.MonkeyPatch) -> None:
    row = SchedulerExecutionFactory(running=True)
    OutputFactory(execution=row, attempt=1, sequence=0, text="one\n")

    def go_on(_console: Console, _seconds: float) -> None:
        OutputFactory(execution=row, attempt=1, sequence=1, text="two\n")
        SchedulerExecution.objects.filter(pk=row.pk).update(state="cancelled")

    monkeypatch.setattr(Console, "pause", go_on)
    followed = cron("output", row.pk, "--follow")
    assert (followed.code, followed.out, followed.err) == (1, "one\ntwo\n", "cancelled\n")


def test_each_retry_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    row = SchedulerExecutionFactory(running=True)
    failed = {"state": "retrying", "error_class": "ValueError"}
    # The next attempt starts between two looks, and fails, too. Then the run succeeds.
    states = iter(
        [failed, failed, {"state": "running"}, failed | {"attempt": 2}, {"state": "succeeded", "error_class": ""}]
    )

    def go_on(_console: Console, _seconds: float) -> None:
        wake_at = clock.now() + timedelta(seconds=30.5)
        SchedulerExecution.objects.filter(pk=row.pk).update(wake_at=wake_at, **next(states))

    monkeypatch.setattr(Console, "pause", go_on)
    followed = cron("output", row.pk, "--follow")
    sentence = "Attempt {} failed: ValueError. The next attempt is due in 30 s."
    assert followed.err.splitlines() == [sentence.format(1), sentence.format(2), "succeeded"]


def test_ctrl_c_ends_with_its_own_code(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_console: Console, _seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Console, "pause", interrupt)
    SchedulerFactory(name="good", rare=True)
    interrupted = cron("run", "good", "--wait")
    assert interrupted.code == 130
    assert interrupted.out.strip().isdecimal()  # the run goes on, and its id is known
    for waiting in ("--wait", "--follow"):
        document = cron("run", "good", waiting, "--json")
        newest = SchedulerExecution.objects.latest("pk").pk
        assert (document.code, document.out, document.err) == (130, "", f"Execution {newest} was asked for.\n")


def test_filters_and_groups_of_runs() -> None:
    team = Group.objects.create(name="team")
    ours = SchedulerFactory(name="ours", group=team)
    hidden = SchedulerExecutionFactory(scheduler=ours, succeeded=True, group=team)
    shared = SchedulerFactory(name="shared", handler="tests.fail")
    failed = SchedulerExecutionFactory(scheduler=shared, failed=True, params={"region": "eu"})
    waiting = SchedulerExecutionFactory(scheduler=shared)

    def ids(*options: object) -> list[int]:
        document = cron("runs", "--json", *options).json
        return [ExecutionShape.model_validate(one).id for one in document["executions"]]

    assert ids() == [waiting.pk, failed.pk, hidden.pk]
    assert ids("--state", "failed") == ids("--error", "ValueError") == ids("--search", "invoice") == [failed.pk]
    assert ids("--search", "param:region=eu") == ids("--search", f"id:{failed.pk}") == [failed.pk]
    assert ids("--group", failed.fingerprint) == ids("--search", str(failed.pk)) == [failed.pk]
    assert ids("--schedule", "shared", "--target", "tests.fail") == [waiting.pk, failed.pk]
    assert ids("--trigger", "manual") == ids("--until", "2020-01-01 00:00") == ids("--type", "report") == []
    assert ids("--since", "2020-01-01 00:00", "--limit", 1) == [waiting.pk]
    assert ids("--limit", 1, "--after", waiting.pk) == [failed.pk]
    for wrong in (["--search", "colour:red"], ["--search", "id:x"], ["--since", "soon"], ["--search", "a\x00"]):
        assert cron("runs", *wrong).code == 4
    assert "ValueError: the invoice" in cron("runs", "--state", "failed").out

    user = UserFactory(username="ann", permissions=["scheduling.view_schedulerexecution"])
    assert ids("--as", "ann") == [waiting.pk, failed.pk]
    assert ids("--as", "ann", "--limit", 1, "--after", waiting.pk) == [failed.pk]
    assert cron("runs", hidden.pk, "--as", "ann").code == cron("output", hidden.pk, "--as", "ann").code == 3
    user.groups.add(team)
    assert f"id{'':8}" in cron("runs", hidden.pk, "--as", "ann").out
    assert Scheduler.objects.count() >= 2


def test_a_run_is_cancelled() -> None:
    row = SchedulerExecutionFactory()
    UserFactory(username="ann", permissions=["scheduling.view_schedulerexecution"])
    assert cron("cancel", row.pk, "--as", "ann").code == 4
    assert cron("cancel", row.pk, "--json").json["result"] == "cancelled"
    row.refresh_from_db()
    assert row.state == "cancelled"
    assert cron("cancel", row.pk).code == 4
