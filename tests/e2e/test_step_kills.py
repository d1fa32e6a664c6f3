"""Children and consumers are killed, drained and stopped at random. Finished work is done once, and none is left out.

The full volume: `TEST_STEP_KILLS=300 TEST_STEP_DRAINS=50 TEST_STEP_STOPS=20 TEST_STEP_ROWS=10000 TEST_STEP_SECONDS=0`.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.utils import timezone as clock

from scheduling.api import Asked, run_many
from scheduling.core.events import stored_policy
from scheduling.core.lifecycle import OPEN_STATES, State
from scheduling.execution.own_broker import close_own_broker, own_broker
from scheduling.execution.results import result_of
from scheduling.inbox.actions import republish
from scheduling.models import Attempt, Event, RunStep, SchedulerExecution
from tests.apps.sample.surviving import OFTEN
from tests.e2e.halted import halt, is_free, send
from tests.support import Commands, marks, wait_for

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]

KILLS = int(os.environ.get("TEST_STEP_KILLS", "4"))
DRAINS = int(os.environ.get("TEST_STEP_DRAINS", "1"))
STOPS = int(os.environ.get("TEST_STEP_STOPS", "1"))
ROWS = int(os.environ.get("TEST_STEP_ROWS", "24"))
SECONDS = float(os.environ.get("TEST_STEP_SECONDS", "0.05"))
"""How long `run.each` takes for one row."""
SEED = int(os.environ.get("TEST_SEED", "20261123"))
AT_ONCE = int(os.environ.get("TEST_STEP_AT_ONCE", "3"))
"""How many runs there are at once. With SQLite and many rows, one: their transactions would keep the others waiting."""
MOST_IN_VAIN = 10
LEASE = {"CRON_LEASE_SECONDS": "10"}
"""With SQLite, a busy writer can keep a consumer from renewing its leases for several seconds."""
KILLED = ["consumer" if number % 4 == 1 else "child" for number in range(KILLS)]


class Trial:
    """A producer and a consumer, the executions that they run, and what is done to them."""

    def __init__(self, commands: Commands, broker_url: str, directory: Path) -> None:
        print(f"seed {SEED}, {KILLS} kills")  # noqa: T201 - shown if the test fails
        self.pick = random.Random(SEED)
        self.commands, self.directory, self.environment = commands, directory, {**LEASE, "BROKER_URL": broker_url}
        self.done: Counter[str] = Counter()
        self.drained: list[tuple[int, int]] = []
        """The executions and attempts that ran when their consumer was asked to stop."""
        self.in_vain = 0
        """How many drains have given back no run."""
        self.killed: set[tuple[int, int]] = set()
        """The executions and attempts whose child was killed."""
        self.republished: set[int] = set()
        self.stopped: dict[tuple[int, int], int] = {}
        """The executions and attempts that another process ended while their consumer was stopped, and the number of
        their effects at this time."""
        commands.ready(commands.start("run_scheduler", **self.environment))
        self.process = self._start()

    def work(
        self, deeds: Sequence[str], name: str, wrap: Callable[[dict[str, Any]], dict[str, Any]] = dict, **params: Any
    ) -> list[int]:
        """Ask for runs of a worker until all deeds are done, in a random order, and wait until everything has ended.

        Args:
            wrap: makes the params of the worker from the given ones.
        """
        asked: list[int] = []
        for deed in self.pick.sample(deeds, len(deeds)):
            done = False
            while not done:
                missing = AT_ONCE - self.open().count()
                if missing > 0:
                    new = [Asked(name, wrap({"directory": str(self.directory), **params})) for _ in range(missing)]
                    asked += [submitted.id for submitted in run_many(new)]
                done = getattr(self, deed)()
                self._republish_failed()
            self.done[deed] += 1
        wait_for(lambda: not self._republish_failed() and not self.open().exists(), "everything has ended", 400)
        return asked

    def _republish_failed(self) -> bool:
        """Republish what has failed after twenty crashes. It goes on where it was. Returns whether there was any."""
        failed = list(SchedulerExecution.objects.in_state(State.FAILED).values_list("pk", flat=True))
        self.republished.update(republish(failed, own_broker(), "trial") if failed else [])
        return bool(failed)

    def open(self) -> Any:
        """The executions that are not over."""
        return SchedulerExecution.objects.in_state(*OPEN_STATES)

    def child(self) -> bool:
        """Kill the child of a run. Returns False if the run has just ended."""
        pk, attempt = self._some_run()
        starts = [line.split() for line in marks(self.directory, pk) if line.startswith(f"start {attempt} ")]
        if not starts or (pk, attempt) not in self._running():
            return False
        try:
            os.kill(int(starts[0][2]), signal.SIGKILL)
        except ProcessLookupError:
            return False
        self.killed.add((pk, attempt))
        return True

    def consumer(self) -> bool:
        """Kill the consumer while something runs, and start another one."""
        self._some_run()
        self.commands.stop(self.process, signal.SIGKILL)
        self.process = self._start()
        return True

    def drain(self) -> bool:
        """Ask the consumer to stop, and start another one.

        Returns False if nothing ran, or if all that ran has come to its end meanwhile; then it is tried again, at most
        `MOST_IN_VAIN` times.
        """
        self._some_run()
        former, self.process = self.process, self._start()
        before = self._running(former)
        assert self.commands.stop(former) == 0
        self.drained += before
        given_back = Attempt.objects.filter(outcome="interrupted", execution__in=[pk for pk, _attempt in before])
        self.in_vain += not given_back.exists()
        return bool(before) and (given_back.exists() or self.in_vain > MOST_IN_VAIN)

    def stop(self) -> bool:
        """Stop the consumer for longer than its lease, alone or with its children, while another consumer goes on.

        Returns False if nothing ran, or if a child has stopped in a transaction that keeps the others from going on.
        """
        self._some_run()
        former = self.process
        halt(former.pid)
        stopped = self._running(former)
        children = self._pids(stopped) if self.pick.random() < 0.6 else set()
        halt(*children)
        try:
            if not stopped or not is_free(stopped):
                return False
            self.process = self._start()
            for pk, attempt in stopped:
                over = Attempt.objects.filter(execution=pk, number=attempt)
                wait_for(over.exists, "another process has ended the stopped attempt")
                self.stopped[pk, attempt] = effects_of(pk, attempt)
        finally:
            for process in self.pick.sample([former.pid, *children], 1 + len(children)):
                send(process, signal.SIGCONT)
        assert self.commands.stop(former) == 0
        return True

    def _pids(self, runs: Sequence[tuple[int, int]]) -> set[int]:
        """The processes of these attempts whose handlers have begun."""
        lines = [(line.split(), attempt) for pk, attempt in runs for line in marks(self.directory, pk)]
        return {int(words[2]) for words, attempt in lines if words[:2] == ["start", str(attempt)]}

    def _some_run(self) -> tuple[int, int]:
        try:
            found = self.pick.choice(wait_for(self._running, "a run"))
        except AssertionError as error:
            columns = ("pk", "state", "attempt", "retry_base", "consumer", "wake_at", "lease_until")
            raise AssertionError(f"{error}; {clock.now()}: {list(self.open().values(*columns))}") from None
        time.sleep(self.pick.uniform(0, 0.5))
        return found

    def _running(self, process: subprocess.Popen[bytes] | None = None) -> list[tuple[int, int]]:
        """The executions and attempts that a consumer runs, by default the newest consumer."""
        of = f"-{(process or self.process).pid}-"
        rows = SchedulerExecution.objects.filter(state="running", consumer__contains=of)
        return list(rows.order_by("pk").values_list("pk", "attempt"))

    def _start(self) -> subprocess.Popen[bytes]:
        return self.commands.start("run_worker", "--concurrency", str(AT_ONCE), **self.environment)


@pytest.fixture
def trial(commands: Commands, broker_url: str, tmp_path: Path, settings: Any) -> Iterator[Trial]:
    """Provide a trial on each transport. This process asks for runs on the same transport."""
    settings.BROKER_URL = broker_url
    yield Trial(commands, broker_url, tmp_path)
    close_own_broker()


def effects(pk: int) -> Counter[str]:
    """How often each effect of an execution is in the database."""
    return Counter(
        name.split(":")[1] for name in Group.objects.filter(name__startswith=f"{pk}:").values_list("name", flat=True)
    )


def effects_of(pk: int, attempt: int) -> int:
    """How many effects of one attempt are in the database."""
    names = Group.objects.filter(name__startswith=f"{pk}:").values_list("name", flat=True)
    return sum(name.split(":")[2] == str(attempt) for name in names)


def check_attempts(pk: int, republished: bool) -> list[str]:
    """Check that the execution succeeded, and that each attempt that a drain has ended is not counted."""
    execution = SchedulerExecution.objects.get(pk=pk)
    attempts = list(Attempt.objects.filter(execution=pk).order_by("number"))
    outcomes = [attempt.outcome for attempt in attempts]
    assert execution.state == "succeeded", (pk, execution.state, outcomes)
    assert outcomes[-1] == "succeeded"
    for attempt in attempts[:-1]:
        # With SQLite, a child may wait too long for its turn to write. Then its handler raises, and the run is retried.
        locked = attempt.outcome == "failed" and attempt.error_message == "database is locked"
        assert locked or attempt.outcome in ("crashed", "interrupted"), (pk, attempt.number, attempt.error_message)
    assert republished or execution.retry_base == outcomes.count("interrupted")
    return outcomes


def test_a_finished_step_is_not_done_again(trial: Trial, tmp_path: Path) -> None:
    asked = trial.work(KILLED, "tests.five_steps", seconds=0.2)
    outcomes: Counter[str] = Counter()
    for pk in asked:
        outcomes.update(check_attempts(pk, pk in trial.republished))
        assert effects(pk) == {"a": 1, "c": 1, "e": 1}, pk
        assert result_of(pk, SchedulerExecution.objects.get(pk=pk).attempt) == [1, 2, 3, 4, 5]
        marked = dict(RunStep.objects.filter(execution=pk).values_list("name", "attempt"))
        assert set(marked) == set("abcde")
        for name in "bd":
            calls = [int(line.split()[1]) for line in marks(tmp_path, pk) if line.startswith(f"{name} ")]
            assert calls, (pk, name)
            assert max(calls) == marked[name], (pk, name, calls, marked)
            assert len(set(calls)) == len(calls)
    print(dict(trial.done), dict(outcomes), f"{len(asked)} executions")  # noqa: T201


def event_of(payload: dict[str, Any]) -> dict[str, Any]:
    return {"topic": "tests.surviving", "payload": payload, "retry": stored_policy(OFTEN)}


def test_a_listener_that_has_finished_is_not_called_again(trial: Trial, tmp_path: Path) -> None:
    asked = trial.work(KILLED, "event", event_of, seconds=0.3)
    for pk in asked:
        check_attempts(pk, pk in trial.republished)
        assert effects(pk) == {"book": 1}, pk
        finished = dict(RunStep.objects.filter(execution=pk).values_list("name", "attempt"))
        assert set(finished) == {"book", "mail", "push"}
        for name in ("mail", "push"):
            calls = [int(line.split()[1]) for line in marks(tmp_path, pk) if line.startswith(f"{name} ")]
            assert calls, (pk, name)
            assert max(calls) == finished[name], (pk, name, calls, finished)
            assert len(set(calls)) == len(calls)
    assert Event.objects.filter(pk__in=asked, topic="tests.surviving").count() == len(asked)


def test_each_row_is_visited_once(trial: Trial) -> None:
    User.objects.bulk_create(User(username=f"visited-{n}") for n in range(ROWS))
    deeds = [*KILLED, *["drain"] * DRAINS, *["stop"] * STOPS]
    asked = trial.work(deeds, "tests.each_user", prefix="visited-", seconds=SECONDS)
    users = {str(pk): 1 for pk in User.objects.values_list("pk", flat=True)}
    outcomes: Counter[str] = Counter()
    for pk in asked:
        outcomes.update(check_attempts(pk, pk in trial.republished))
        assert effects(pk) == users, pk
    for pk, attempt in set(trial.drained) - trial.killed:
        ended = Attempt.objects.get(execution=pk, number=attempt)
        assert ended.outcome in ("interrupted", "succeeded"), (pk, attempt, ended.outcome, ended.error_message)
    for (pk, attempt), number in trial.stopped.items():
        assert Attempt.objects.get(execution=pk, number=attempt).outcome == "crashed"
        assert effects_of(pk, attempt) == number, (pk, attempt)
    about = f"{len(asked)} executions of {ROWS} rows, {len(trial.drained)} drained, {len(trial.stopped)} stopped"
    print(dict(trial.done), dict(outcomes), about)  # noqa: T201
    assert outcomes["interrupted"] >= 1
