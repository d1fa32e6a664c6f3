"""Handlers for tests. Each handler behaves or ends in a different way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from django.db import connection
from pydantic import BaseModel, Field, SecretStr

from scheduling.api import Asked, run_many
from scheduling.handlers import NonRetryableError, RetryableError, RetryPolicy, Run, worker
from scheduling.models import SchedulerExecution
from tests.apps.sample import (  # noqa: F401 - these modules register workers
    batch_misbehaviours,
    batches,
    coroutines,
    depending,
    doors,
    exclusive,
    habits,
    keyed,
    limited,
    listening,
    misbehaviours,
    modelled,
    policed,
    readiness,
    returns,
    run_facts,
    surviving,
)
from tests.apps.sample.marks import MarkParams, mark

FAST = RetryPolicy(max_retries=2, delay_ms=1000, multiplier=1.0)


@worker("tests.noop")
def noop(params: BaseModel, run: Run) -> None:
    """Does nothing."""


class GiveParams(BaseModel):
    """What `give` returns."""

    value: Any = None


@worker("tests.give", params=GiveParams)
def give(params: GiveParams, run: Run) -> Any:
    """Returns a value."""
    return params.value


@worker("tests.fan_out")
def fan_out(params: BaseModel, run: Run) -> list[int]:
    """Asks for two runs, and returns their ids."""
    return [submitted.id for submitted in run_many([Asked("tests.noop"), Asked("tests.noop")])]


@worker("tests.noop_fresh", fresh=True)
def noop_fresh(params: BaseModel, run: Run) -> None:
    """Does nothing, in a new process."""


@worker("tests.mark", params=MarkParams, retry=FAST)
def mark_and_sleep(params: MarkParams, run: Run) -> None:
    """Writes a line at its start and at its end."""
    mark(params, run)
    time.sleep(params.seconds)
    mark(params, run, "end")


@worker("tests.mark_once", params=MarkParams, retry=RetryPolicy(max_retries=0))
def mark_once(params: MarkParams, run: Run) -> None:
    """Does its work in its first attempt only, as docs/handlers.md says."""
    if run.attempt > 1:
        raise NonRetryableError("An earlier attempt may have done it. Look first.")
    mark_and_sleep(params, run)


@worker("tests.ask", params=MarkParams, retry=FAST)
def ask(params: MarkParams, run: Run) -> None:
    """Asks the database, writes a line, and then waits."""
    SchedulerExecution.objects.count()
    mark(params, run)
    time.sleep(params.seconds)


@worker("tests.session", retry=FAST)
def session(params: BaseModel, run: Run) -> None:
    """Prints the identity of its connection to the database."""
    connection.ensure_connection()
    run.log.info("session %s %s", id(connection.connection), connection.close_at)


@worker("tests.linger", params=MarkParams, retry=FAST)
def linger(params: MarkParams, run: Run) -> None:
    """Ends when the file `enough` exists in the directory, or after `seconds`."""
    mark(params, run)
    deadline = time.monotonic() + params.seconds
    while not (Path(params.directory) / "enough").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    mark(params, run, "end")


@worker("tests.chatter", params=MarkParams, retry=FAST)
def chatter(params: MarkParams, run: Run) -> None:
    """Prints a line every 0.2 s."""
    mark(params, run)
    for number in range(1, int(params.seconds * 5)):
        print(f"tick {number}")  # noqa: T201
        run.progress(number, params.seconds * 5)
        time.sleep(0.2)


@worker("tests.narrate", params=MarkParams, retry=RetryPolicy(max_retries=0))
def narrate(params: MarkParams, run: Run) -> None:
    """Prints 5 MB in `seconds`. A file says how many lines were printed when."""
    for number in range(50_000):
        print(f"line {number:08d} {'x' * 85}")  # noqa: T201
        if number % 250 == 249:
            sys.stdout.flush()
            with (Path(params.directory) / f"{run.execution_id}.txt").open("a") as file:
                file.write(f"{time.time()} {number}\n")
            time.sleep(params.seconds / 200)


@worker("tests.talk", params=MarkParams, retry=FAST)
def talk(params: MarkParams, run: Run) -> None:
    """Prints, logs, and starts a program that prints."""
    print("plain print")  # noqa: T201
    print("to stderr", file=sys.stderr)  # noqa: T201
    run.log.info("logged %s", "info")
    run.log.warning("logged warning")
    run.log.success("logged success")
    subprocess.run([sys.executable, "-c", "print('from a grandchild')"], check=True)
    run.progress(3, 10)


@worker("tests.gives_up", retry=FAST, give_up_on=LookupError)
def gives_up(params: BaseModel, run: Run) -> None:
    """Raises an error that its handler does not retry."""
    raise KeyError("region")


@worker("tests.cannot_judge", retry=FAST, retry_if=lambda error: sys.exit(4))
def cannot_judge(params: BaseModel, run: Run) -> None:
    """Raises an error, and its rule about errors ends the process."""
    raise KeyError("region")


@worker("tests.fail", retry=FAST)
def fail(params: BaseModel, run: Run) -> None:
    """Always raises."""
    try:
        raise ConnectionError("no route to 10.1.2.3")
    except ConnectionError as error:
        raise RuntimeError(f"cannot reach the service, attempt {run.attempt}") from error


@worker("tests.fail_once", params=MarkParams, retry=FAST)
def fail_once(params: MarkParams, run: Run) -> None:
    """Raises on the first attempt."""
    mark(params, run)
    if run.retry_count == 0:
        raise RuntimeError("the first attempt fails")


if "TEST_OWN_QUEUE" in os.environ:  # a queue that no consumer serves would be a finding in other tests

    @worker("tests.in_own_queue", queue="own")
    def in_own_queue(params: BaseModel, run: Run) -> None:
        """Does nothing, in a queue of its own."""


@worker("tests.never_again", retry=FAST)
def never_again(params: BaseModel, run: Run) -> None:
    """Raises an error that forbids a retry."""
    raise NonRetryableError("the account is closed")


@worker("tests.soon_again", retry=FAST)
def soon_again(params: BaseModel, run: Run) -> None:
    """Raises an error that asks for a retry after 1.5 s."""
    raise RetryableError("busy", retry_after=1.5)


@worker("tests.exit", retry=FAST)
def leave(params: BaseModel, run: Run) -> None:
    """Calls sys.exit with a code."""
    sys.exit(3)


@worker("tests.vanish", retry=FAST)
def vanish(params: BaseModel, run: Run) -> None:
    """Ends the process with exit code 0 before the handler returns."""
    os._exit(0)


@worker("tests.die", retry=FAST)
def die(params: BaseModel, run: Run) -> None:
    """Kills its process with SIGKILL."""
    os.kill(os.getpid(), signal.SIGKILL)


@worker("tests.hang", params=MarkParams, retry=RetryPolicy(max_retries=0), time_limit=1)
def hang(params: MarkParams, run: Run) -> None:
    """Runs longer than its time limit and ignores SIGTERM."""
    while True:
        with suppress(BaseException):
            time.sleep(600)


@worker("tests.fork", params=MarkParams, retry=FAST)
def fork(params: MarkParams, run: Run) -> None:
    """Starts a program that still runs when the handler returns."""
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    mark(params, run)


DAEMON = """
import os, sys, time
if os.fork():
    os._exit(0)
os.setsid()
if os.fork():
    os._exit(0)
while True:
    with open(sys.argv[1], "a") as file:
        file.write(f"{os.getpid()}\\n")
    time.sleep(0.05)
"""
"""A program that leaves its session and its parent, and writes its process id twenty times a second."""


@worker("tests.daemon_fresh", params=MarkParams, retry=FAST, fresh=True)
@worker("tests.daemon", params=MarkParams, retry=FAST)
def daemon(params: MarkParams, run: Run) -> None:
    """Starts a daemon that still runs when the handler returns."""
    path = Path(params.directory) / f"daemon-{run.execution_id}.txt"
    subprocess.run([sys.executable, "-c", DAEMON, str(path)], check=True)
    while not path.exists():
        time.sleep(0.01)
    mark(params, run)
    time.sleep(params.seconds)


class LeaveParams(MarkParams):
    """How many programs `leave` starts, and what it does then."""

    programs: int = 1
    fails: bool = False
    loses_its_row: bool = False
    ignores_its_end: bool = False


@worker("tests.leave", params=LeaveParams, retry=RetryPolicy(max_retries=0), leaves_processes=True)
def leave_processes(params: LeaveParams, run: Run) -> None:
    """Starts programs in its own session and a daemon, and leaves them running."""
    programs = [subprocess.Popen(["sleep", "600"], stdout=subprocess.DEVNULL) for _ in range(params.programs)]
    Path(params.directory, f"programs-{run.execution_id}.txt").write_text(" ".join(str(one.pid) for one in programs))
    ended = subprocess.Popen(["true"])
    os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)  # it stays a zombie
    with suppress(BaseException if params.ignores_its_end else ()):
        daemon(params, run)
    if params.loses_its_row:
        SchedulerExecution.objects.filter(pk=run.execution_id).update(attempt=run.attempt + 1)
    if params.fails:
        raise RuntimeError("it fails afterwards")


class FloodParams(BaseModel):
    """The amount of output in megabytes."""

    megabytes: int = 20


@worker("tests.flood", params=FloodParams, retry=FAST)
def flood(params: FloodParams, run: Run) -> None:
    """Prints more output than the consumer stores."""
    line = "x" * 99 + "\n"
    print("first line")  # noqa: T201
    for _ in range(params.megabytes * 10_000):
        sys.stdout.write(line)
    print("last line")  # noqa: T201


class PourParams(MarkParams):
    """How much a run prints in each second, in megabytes."""

    megabytes_a_second: float = Field(10, gt=0)


@worker("tests.pour", params=PourParams, retry=RetryPolicy(max_retries=0))
def pour(params: PourParams, run: Run) -> None:
    """Prints lines of 100 bytes at a rate. Each line begins with the time. A file says how many bytes were printed."""
    rate, printed, begin = params.megabytes_a_second * 1_000_000, 0, time.time()
    while (now := time.time()) < begin + params.seconds:
        lines = round((rate * (now - begin) - printed) / 100)
        piece = min(lines, 5_000)
        sys.stdout.write((f"{now:.3f} ".ljust(99, "x") + "\n") * piece)
        printed += 100 * piece
        if piece == lines:
            time.sleep(0.01)
    (Path(params.directory) / f"{run.execution_id}.txt").write_text(f"{printed} {time.time() - begin}")


@worker("tests.hostile", retry=RetryPolicy(max_retries=0))
def hostile(params: BaseModel, run: Run) -> None:
    """Prints and raises text that a database may refuse or that is dangerous on a page."""
    sys.stdout.buffer.write(b"\x00nul \xff\xfe broken \x1b[31mred\x1b[0m <script>alert(1)</script>\n")
    sys.stdout.flush()
    raise ValueError("\x00 \ud800 <b>bold</b> " + "y" * 100_000)


class SyncParams(BaseModel):
    """A params model whose number must be from 1 to 90."""

    since_days: int = Field(1, ge=1, le=90)


@worker("tests.typed", params=SyncParams, retry=FAST)
def typed(params: SyncParams, run: Run) -> None:
    """Needs params that fit."""
    run.log.info("since %s", params.since_days)


class KeepParams(BaseModel):
    """A secret and a number."""

    token: SecretStr
    days: int = 1


@worker("tests.keep", params=KeepParams, retry=FAST)
def keep(params: KeepParams, run: Run) -> None:
    """Fails without its secret in the error."""
    raise RuntimeError("the vault is closed")


@worker("tests.count", retry=FAST)
def count(params: BaseModel, run: Run) -> None:
    """Reports its progress faster than it is sent."""
    for number in range(1, 1_001):
        run.progress(number, 1_000)


@worker("tests.count_and_fail", retry=FAST)
def count_and_fail(params: BaseModel, run: Run) -> None:
    """Reports its progress faster than it is sent, and raises."""
    count(params, run)
    raise RuntimeError("it broke at the end")


@worker("tests.tell_secret_fresh", params=KeepParams, retry=FAST, fresh=True)
@worker("tests.tell_secret", params=KeepParams, retry=FAST)
def tell_secret(params: KeepParams, run: Run) -> None:
    """Prints, logs, reports and raises its secret."""
    first, *key = params.token.get_secret_value().splitlines()
    print(f"printed {first}")  # noqa: T201
    for character in f"piece by piece {first}\n":
        os.write(1, character.encode())
        time.sleep(0.001)
    run.log.info("logged %s", "\n".join([first, *key]))
    print({"token": first})  # noqa: T201
    run.progress(1, 3, first)
    print("the visible end")  # noqa: T201
    raise RuntimeError(f"refused: {first} and {key}")


@worker("tests.tell_retry", retry=FAST)
def tell_retry(params: BaseModel, run: Run) -> None:
    """Prints what a handler knows about its retries, and fails until its last attempt."""
    last = "last" if run.is_last_attempt else "not last"
    print(f"retry {os.environ['RETRY_COUNT']} {run.retry_count}, attempt {run.attempt}, {last}")  # noqa: T201
    print(f"key {run.execution_id} {run.execution_key}")  # noqa: T201
    if not run.is_last_attempt:
        raise RuntimeError("an earlier attempt fails")


@worker("tests.group")
def tell_group(params: BaseModel, run: Run) -> None:
    """Prints the group of the run."""
    print(f"group {run.group} {run.group_id}")  # noqa: T201
