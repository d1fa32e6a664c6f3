"""A finished step is stored with its work, and refused if the attempt was fenced off."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.contrib.sessions.models import Session
from django.db import DatabaseError, connection, transaction
from django.utils import timezone as clock

from scheduling.core.steps import FencedOff, HandedBack, StepError
from scheduling.execution import steps as ledgers
from scheduling.execution.steps import DatabaseLedger
from scheduling.handlers import Run
from scheduling.handlers import steps as rules
from scheduling.handlers.steps import MemoryLedger, Steps
from scheduling.handlers.walk import BATCH
from scheduling.models import RunStep, SchedulerExecution
from tests.factories import SchedulerExecutionFactory
from tests.support import NOON


class Broken(Exception):
    """What a handler raises."""


def add(name: str) -> None:
    Group.objects.create(name=name)


def in_a_block(run: Run, name: str, error: Exception | None = None) -> None:
    with run.atomic():
        run.checkpoint(name)
        add(name)
        if error is not None:
            raise error


def added() -> list[str]:
    return list(Group.objects.order_by("name").values_list("name", flat=True))


def run_with(steps: Steps, number: int = 1) -> Run:
    return Run(7, "manual-a", number, 0, False, NOON, steps=steps)


class Attempts:
    """The attempts of one execution, one after the other."""

    def __init__(self) -> None:
        self.row = SchedulerExecutionFactory(state="running", attempt=0)
        self.stopping = False

    def next(self) -> Run:
        """Start the next attempt. The one before is fenced off."""
        self.row.attempt += 1
        SchedulerExecution.objects.filter(pk=self.row.pk).update(attempt=self.row.attempt)
        ledger = DatabaseLedger(self.row.pk, self.row.attempt)
        return run_with(Steps(ledger, lambda: self.stopping), self.row.attempt)


@pytest.fixture
def attempts(transactional_db: None) -> Attempts:
    """Provide the attempts of an execution that runs."""
    return Attempts()


def in_memory() -> Callable[[], Run]:
    ledger = MemoryLedger()
    return lambda: run_with(Steps(ledger))


def test_a_run_of_a_unit_test_keeps_its_steps_in_memory() -> None:
    start, calls = in_memory(), []
    for _ in range(2):
        run = start()
        assert run.step("Charge", lambda: calls.append(1) or (1, 2)) == [1, 2]
        assert run.step("mail", calls.append, 2, atomic=False) is None
        with run.atomic():
            run.checkpoint({"page": 3})
        assert run.cursor == {"page": 3}
        assert not run.stopping
    assert calls == [1, 2]


@pytest.mark.parametrize("name", ["", " a", "é", "a\nb", "a" * 101, 5, None, "\x00"])
def test_a_name_that_databases_may_compare_differently_is_refused(name: Any) -> None:
    with pytest.raises(StepError, match="name of a step"):
        in_memory()().step(name, int)


@pytest.mark.parametrize("result", [object(), {1, 2}, float("nan"), "\x00", "x" * 64_000, 2**70])
@pytest.mark.parametrize("atomic", [True, False])
def test_a_result_that_cannot_be_stored_is_an_error_at_the_call(result: Any, atomic: bool) -> None:
    with pytest.raises(StepError, match="The result of the step 'a'"):
        in_memory()().step("a", lambda: result, atomic=atomic)


def test_a_name_is_used_once_in_an_attempt_and_steps_are_not_nested() -> None:
    run = in_memory()()
    run.step("a", int)
    with pytest.raises(StepError, match="used twice"):
        run.step("A", int)
    inner = [
        lambda: run.step("c", int), lambda: run.checkpoint(1), lambda: run.atomic().__enter__(),
        lambda: run.each(User.objects.all(), print),
    ]  # fmt: skip
    for number, call in enumerate(inner):
        with pytest.raises(StepError, match="is not finished"):
            run.step(f"outer {number}", call)
    with pytest.raises(StepError, match="is not finished"), run.atomic():
        run.step("in a block", int)


def test_a_run_has_a_limited_number_of_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scheduling.handlers.steps.MOST_STEPS", 2)
    run = in_memory()()
    run.step("a", int)
    run.step("b", int)
    with pytest.raises(StepError, match="at most 2 steps"):
        run.step("c", int)


def test_a_step_and_its_mark_are_one_transaction(attempts: Attempts) -> None:
    def broken() -> None:
        add("lost")
        raise Broken

    run = attempts.next()
    assert run.step("a", lambda: add("a") or {"rows": 1}) == {"rows": 1}
    with pytest.raises(Broken):
        run.step("b", broken)
    with pytest.raises(StepError, match="is not JSON"):
        run.step("c", lambda: add("lost, too") or object())
    later = attempts.next()
    assert later.step("a", lambda: add("again")) == {"rows": 1}
    assert later.step("b", lambda: add("b")) is None
    assert added() == ["a", "b"]
    assert set(RunStep.objects.values_list("name", "attempt")) == {("a", 1), ("b", 2)}


@pytest.mark.parametrize("call", ["step", "step outside", "each", "atomic", "atomic without", "checkpoint"])
def test_an_attempt_that_was_fenced_off_writes_nothing(attempts: Attempts, call: str) -> None:
    run, called = attempts.next(), []
    User.objects.create(username="ann")
    attempts.next()

    def work(*_: Any) -> None:
        called.append(call)
        add("by the former attempt")

    def in_block(checkpoint: bool) -> None:
        with run.atomic():
            work()
            if checkpoint:
                run.checkpoint(1)

    calls = {
        "step": lambda: run.step("a", work),
        "step outside": lambda: run.step("a", work, atomic=False),
        "each": lambda: run.each(User.objects.all(), work),
        "atomic": lambda: in_block(True),
        "atomic without": lambda: in_block(False),
        "checkpoint": lambda: run.checkpoint(1),
    }
    with pytest.raises(FencedOff):
        calls[call]()
    assert added() == []
    assert not RunStep.objects.exists()
    assert bool(called) is (call not in ("step outside", "checkpoint"))


@pytest.mark.parametrize("call", ["each", "atomic", "checkpoint"])
def test_an_attempt_that_was_fenced_off_moves_no_cursor(attempts: Attempts, call: str) -> None:
    users = [User.objects.create(username=name) for name in ("ann", "bob", "cid")]
    run, seen = attempts.next(), []
    stored = RunStep.objects.filter(kind="cursor")

    def visit(user: User) -> None:
        seen.append(user.username)
        add(user.username)
        if user.pk == users[1].pk:
            attempts.next()

    def work() -> None:
        if call == "each":
            run.each(User.objects.all(), visit)
        for name in ("first", "second"):
            if call == "atomic":
                in_a_block(run, name)
            else:
                run.checkpoint(name)
            attempts.next()

    with pytest.raises(FencedOff):
        work()
    assert [(row.attempt, row.value) for row in stored] == [(1, str(users[0].pk) if call == "each" else '"first"')]
    assert added() == {"each": ["ann"], "atomic": ["first"], "checkpoint": []}[call]


@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite locks the whole database for each write")
def test_no_process_takes_a_run_over_between_its_cursor_and_the_commit(attempts: Attempts) -> None:
    run = attempts.next()
    run.checkpoint("first")

    def locked_elsewhere() -> bool:
        rows = SchedulerExecution.objects.filter(pk=attempts.row.pk)
        try:
            with transaction.atomic():
                return not rows.select_for_update(nowait=True).exists()
        except DatabaseError:
            return True
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as other, transaction.atomic():
        assert not other.submit(locked_elsewhere).result()
        DatabaseLedger(attempts.row.pk, attempts.row.attempt).write("cursor", "checkpoint", '"second"')
        assert other.submit(locked_elsewhere).result()


def test_an_execution_that_is_over_moves_no_cursor(attempts: Attempts) -> None:
    run = attempts.next()
    run.checkpoint("first")
    SchedulerExecution.objects.filter(pk=attempts.row.pk).update(state="succeeded")
    with pytest.raises(FencedOff):
        run.checkpoint("second")
    assert attempts.next().cursor == "first"


def test_cursors_of_other_runs_and_names_stay(attempts: Attempts) -> None:
    other = Attempts()
    users = [User.objects.create(username=name) for name in ("ann", "bob")]
    for one in (attempts, other):
        run = one.next()
        assert run.each(User.objects.all(), lambda _user: None, name="people") == 2
        run.checkpoint("first")
    attempts.next().checkpoint("second")
    found = set(RunStep.objects.values_list("execution", "name", "value", "attempt"))
    assert found == {
        (attempts.row.pk, "people", str(users[1].pk), 1), (attempts.row.pk, "checkpoint", '"second"', 2),
        (other.row.pk, "people", str(users[1].pk), 1), (other.row.pk, "checkpoint", '"first"', 1),
    }  # fmt: skip


def test_frequent_checkpoints_are_stored_when_their_time_has_come(
    attempts: Attempts, monkeypatch: pytest.MonkeyPatch
) -> None:
    time = [100.0]
    monkeypatch.setattr(rules.time, "monotonic", lambda: time[0])
    run = attempts.next()
    stored = []
    for number in range(10):
        run.checkpoint(number, every=1.0)
        stored.append(run.cursor)
        time[0] += 0.4
    assert stored == [0, 0, 0, 3, 3, 3, 6, 6, 6, 9]
    attempts.stopping = True
    with pytest.raises(HandedBack):
        run.checkpoint(10, every=1.0)
    assert run.cursor == 10


@pytest.mark.parametrize("every", [-1, 60.5, float("nan"), float("inf")])
def test_a_time_between_checkpoints_is_bounded(every: float) -> None:
    with pytest.raises(StepError, match="every= is from 0 to 60"):
        in_memory()().checkpoint(1, every=every)


def test_a_step_refuses_a_transaction_around_it(attempts: Attempts) -> None:
    run = attempts.next()
    for call in (lambda: run.step("a", int), lambda: run.checkpoint(1)):
        with pytest.raises(StepError, match=r"outside of transaction.atomic\(\)"), transaction.atomic():
            call()


def test_each_goes_on_after_the_last_row_that_was_committed(attempts: Attempts) -> None:
    User.objects.bulk_create(User(username=f"user{number:02}") for number in range(10))
    seen: list[str] = []

    def visit(user: User) -> None:
        add(user.username)
        if len(seen) == 4:
            seen.append("-")
            raise Broken(user.username)
        seen.append(user.username[-2:])

    rows = User.objects.order_by("-pk")
    with pytest.raises(Broken, match="user04"):
        attempts.next().each(rows, visit, key="username")
    User.objects.filter(username="user06").delete()
    assert attempts.next().each(rows, visit, key="username") == 5
    assert seen == ["00", "01", "02", "03", "-", "04", "05", "07", "08", "09"]
    assert added() == [f"user{number:02}" for number in range(10) if number != 6]
    assert attempts.next().each(rows, visit, key="username") == 0


def test_each_reads_keys_in_batches_and_each_row_as_it_is_now(attempts: Attempts) -> None:
    User.objects.bulk_create(User(username=f"u{number}") for number in range(BATCH + 5))
    found = []

    def visit(user: User) -> None:
        if not found:
            User.objects.exclude(pk=user.pk).update(first_name="new")
            User.objects.filter(username="u9").update(is_active=False)
        found.append(user.first_name)

    assert attempts.next().each(User.objects.filter(is_active=True), visit) == BATCH + 4
    assert found == ["", *["new"] * (BATCH + 3)]


@pytest.mark.parametrize(
    ("rows", "key", "text"),
    [
        (lambda: User.objects.all()[:3], "pk", "without a slice"),
        (lambda: User.objects.all().union(User.objects.all()), "pk", "without a slice"),
        (lambda: User.objects.all(), "first_name", "must be unique"),
        (lambda: User.objects.all(), "colour", "no column 'colour'"),
        (lambda: User.objects.using("other"), "pk", "default database"),
    ],
)
def test_each_refuses_rows_that_have_no_order(rows: Callable[[], Any], key: str, text: str) -> None:
    with pytest.raises(StepError, match=text):
        in_memory()().each(rows(), print, key)


def test_each_takes_keys_that_are_no_numbers(attempts: Attempts) -> None:
    for number in range(3):
        Session.objects.create(session_key=f"k{number}", session_data="", expire_date=clock.now())
    keys: list[str] = []

    def visit(row: Session) -> None:
        keys.append(row.session_key)
        if len(keys) == 2:
            raise Broken

    with pytest.raises(Broken):
        attempts.next().each(Session.objects.all(), visit)
    attempts.next().each(Session.objects.all(), visit)
    assert keys == ["k0", "k1", "k1", "k2"]


def test_a_checkpoint_is_committed_with_the_writes_of_its_block(attempts: Attempts) -> None:
    run = attempts.next()
    assert run.cursor is None
    in_a_block(run, "page 1")
    with pytest.raises(Broken):
        in_a_block(run, "page 2", error=Broken())
    assert attempts.next().cursor == "page 1"
    assert added() == ["page 1"]


def test_a_run_whose_consumer_stops_is_handed_back_after_the_commit(attempts: Attempts) -> None:
    run = attempts.next()
    run.step("a", int)
    attempts.stopping = True
    assert run.stopping
    with pytest.raises(HandedBack):
        in_a_block(run, "kept")
    assert attempts.next().cursor == "kept"
    with pytest.raises(HandedBack):
        attempts.next().checkpoint(2)
    assert attempts.next().cursor == 2
    with pytest.raises(HandedBack):
        attempts.next().step("b", add, "not begun")
    assert attempts.next().step("a", int) == 0, "a finished step is no reason to stop"
    User.objects.create(username="ann")
    with pytest.raises(HandedBack):
        attempts.next().each(User.objects.all(), lambda user: add("not begun"))
    assert added() == ["kept"]


@pytest.mark.parametrize("value", ["{", "NaN", "[" * 200])
def test_a_damaged_value_is_an_error_and_no_reason_to_do_the_work_again(attempts: Attempts, value: str) -> None:
    run = attempts.next()
    run.step("a", int)
    run.checkpoint(5)
    RunStep.objects.update(value=value)
    later = attempts.next()
    with pytest.raises(StepError, match="What is stored for 'a'"):
        later.step("a", int)
    with pytest.raises(StepError, match="What is stored for 'checkpoint'"):
        _ = later.cursor


def test_a_long_step_on_sqlite_is_worth_a_warning(
    attempts: Attempts, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(ledgers, "SLOW_SECONDS", -1.0)
    with caplog.at_level(logging.WARNING, "scheduling.run"):
        attempts.next().step("a", int)
    assert ("locks the whole database" in caplog.text) is (connection.vendor == "sqlite")
