"""A fault of a database server under a steady load, and what all tests of such faults expect.

TEST_CLUSTER_SECONDS is the length of a fault: with 25 s, leases end, and runs of 25 s are in the middle. Without it,
the tests are skipped, because they take minutes. TEST_CLUSTER_RATE is the number of runs a second (20),
TEST_CLUSTER_REPEATS how often each fault comes in one test (1), TEST_CLUSTER_READ_ONLY_SECONDS the length of the fault
"read-only", and TEST_BROKER_URL the RabbitMQ or `database://`. The figures are printed (`pytest -s`).
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable

import pytest

from tests.cluster.database_fleet import Audit, DatabaseFleet

SECONDS = float(os.environ.get("TEST_CLUSTER_SECONDS", "25"))
REPEATS = int(os.environ.get("TEST_CLUSTER_REPEATS", "1"))
LIMIT = 60.0
"""The longest wait for the next start, on a loaded machine. What is usual is printed."""

DATABASE_FAULTS = [
    pytest.mark.cluster,
    pytest.mark.processes,
    pytest.mark.any_database,
    pytest.mark.skipif(
        "TEST_CLUSTER_SECONDS" not in os.environ, reason="TEST_CLUSTER_SECONDS says how long a fault is"
    ),
]
"""The marks of a test of such faults."""


def say(text: str) -> None:
    """Print a line of figures at once."""
    sys.stdout.write(f"\n{text}")
    sys.stdout.flush()


def doctor_names(fleet: DatabaseFleet, words: str) -> None:
    """Check that the doctor tells the fault within a minute."""
    begun = time.monotonic()
    seen = fleet.doctor()
    took = time.monotonic() - begun
    say(f"doctor after {took:.1f} s: {' | '.join(seen[:2])}")
    assert any(words in sentence for sentence in seen), seen
    assert took < 60


def goes_on(fleet: DatabaseFleet, name: str, back: float) -> None:
    """Wait for the next start after the database is back (epoch seconds), and print how long it took."""
    delay = fleet.next_start(back)
    say(f"{name}: next start after {delay:.1f} s")
    assert delay <= LIMIT


def trial(
    fleet: DatabaseFleet,
    name: str,
    begin: Callable[[], None],
    end: Callable[[], None],
    words: str,
    seconds: float = SECONDS,
) -> None:
    """Cause the fault for some seconds, REPEATS times, and print when the next run started.

    Args:
        words: what the doctor must say of it.
    """
    for number in range(REPEATS):
        fleet.steady(6)
        begin()
        began = time.time()
        try:
            fleet.steady(min(seconds, 12) / 2)
            doctor_names(fleet, words)
        finally:
            time.sleep(max(0.0, began + seconds - time.time()))
            end()
        goes_on(fleet, f"{name} {number + 1}", time.time())
    fleet.steady(6)


def judge(fleet: DatabaseFleet, name: str) -> Audit:
    """Check that nothing was lost and that no run went under the row of another one."""
    audit = fleet.finish()
    say(f"{name}: {audit}")
    assert (audit.lost, audit.strange) == (set(), set())
    return audit


def judge_strictly(fleet: DatabaseFleet, name: str) -> None:
    """Check also that every row is there and that nothing was doubled."""
    audit = judge(fleet, name)
    assert (audit.missing, audit.doubled) == (set(), set())
