"""A PostgreSQL pair that fails over, is away, read-only or suspended. `tests/cluster/trial.py` names the variables."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

from tests.cluster.database_fleet import RATE, DatabaseFleet
from tests.cluster.servers import PostgreSQL, postgres_url
from tests.cluster.trial import DATABASE_FAULTS, SECONDS, doctor_names, goes_on, judge, judge_strictly, trial

pytestmark = DATABASE_FAULTS

READ_ONLY_SECONDS = float(os.environ.get("TEST_CLUSTER_READ_ONLY_SECONDS", SECONDS))

Start = Callable[..., DatabaseFleet]


def test_a_server_is_away(start: Start, primary: PostgreSQL) -> None:
    """With runs of 25 s. Without decision 13, each of them is doubled."""
    fleet = start(postgres_url(primary), primary.rows)
    trial(fleet, "away", primary.stop, primary.start, "does not answer")
    judge_strictly(fleet, "away")


def test_the_standby_is_promoted(start: Start, primary: PostgreSQL, standby: PostgreSQL) -> None:
    """With remote_apply. One time only: afterwards there is no standby any more."""
    primary.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
    primary.execute("ALTER SYSTEM SET synchronous_commit = 'remote_apply'", "SELECT pg_reload_conf()")
    fleet = start(postgres_url(primary, standby), standby.rows)
    fleet.steady(6)
    primary.send(signal.SIGKILL)
    killed = time.time()
    doctor_names(fleet, "does not answer")
    time.sleep(max(0.0, killed + SECONDS - time.time()))
    standby.promote()
    goes_on(fleet, "promoted", time.time())
    fleet.steady(6)
    judge_strictly(fleet, "promoted")


def test_an_asynchronous_standby_lacks_the_last_seconds(start: Start, primary: PostgreSQL, standby: PostgreSQL) -> None:
    """Ids come again, and no run goes under the row of another one. What the standby has, is not lost."""
    fleet = start(postgres_url(primary, standby), standby.rows)
    fleet.steady(6)
    standby.execute("ALTER SYSTEM SET primary_conninfo = ''", "SELECT pg_reload_conf()")
    standby_has = {row[0] for row in standby.rows()}
    time.sleep(5)
    primary.send(signal.SIGKILL)
    standby.promote()
    goes_on(fleet, "lost tail", time.time())
    fleet.steady(6)
    audit = judge(fleet, "lost tail")
    assert len(audit.missing) <= 8 * RATE
    ended_twice = {number for number in audit.doubled if audit.asked[number] not in standby_has}
    assert len(audit.doubled) <= len(audit.missing) + 12, ended_twice  # their success was in the lost part


def test_a_server_is_read_only(start: Start, primary: PostgreSQL) -> None:
    def begin() -> None:
        primary.execute("ALTER SYSTEM SET default_transaction_read_only = on", "SELECT pg_reload_conf()")

    def end() -> None:
        primary.execute(
            "SET default_transaction_read_only = off",
            "ALTER SYSTEM RESET default_transaction_read_only",
            "SELECT pg_reload_conf()",
        )

    fleet = start(postgres_url(primary), primary.rows)
    trial(fleet, "read-only", begin, end, "read-only", READ_ONLY_SECONDS)
    judge_strictly(fleet, "read-only")


def test_a_server_is_suspended(start: Start, primary: PostgreSQL) -> None:
    fleet = start(postgres_url(primary), primary.rows)
    stop, go_on = (lambda number=number: primary.send(number) for number in (signal.SIGSTOP, signal.SIGCONT))
    trial(fleet, "suspended", stop, go_on, "does not answer")
    judge_strictly(fleet, "suspended")
