"""The volume and the seed of the fuzz tests. Both come from the environment.

TEST_FUZZ_PERCENT is the percentage of the full volumes. `make test` uses 0.5, `make test-database` 0.3,
`make test-fast` 0.1, and `make fuzz` 10.
TEST_FUZZ_SEED is the seed, and the header of pytest names it. Without it, `make test` always uses the same seed, so
that a change is not blamed for an old mistake. `.ci/run` gives each database server a seed of its own. `make fuzz`
chooses a new seed each time.
"""

from __future__ import annotations

import os
import random
import sys

MESSAGES = 25_000
"""Hostile messages. A tenth of them goes directly into the failed queue."""
VALUES = 20_000
"""Hostile values that the database has stored, and that a turn of producer and consumer then processes."""
STANDING = 2_000
"""Hostile values that the database holds while each address of the admin is requested."""
MISBEHAVIOURS = 500
"""Runs of handlers that misbehave."""

SEED = 20261122
"""The seed of `make test`."""
QUERIES = 20_000
"""Requests with hostile query strings."""
FORMS = 5_000
"""Forms that are sent with hostile values."""
API = 20_000
"""Requests to the HTTP API that are generated from its OpenAPI document."""
ALERTS = 5_000
"""Hostile values that the database holds while the alert rules are evaluated."""
CHATS = 20_000
"""Hostile addresses of chats."""


def choose_seed() -> str:
    """Return the seed of this session, and keep it in the environment for the processes of pytest-xdist."""
    chosen = random.SystemRandom().randrange(10**6) if "TEST_FUZZ_PERCENT" in os.environ else SEED
    return os.environ.setdefault("TEST_FUZZ_SEED", str(chosen))


def percent() -> float:
    """Return the percentage of the full volumes."""
    usual = "0.1" if os.environ.get("TEST_FAST") else "0.3" if os.environ.get("TEST_DATABASE_URL") else "0.5"
    return float(os.environ.get("TEST_FUZZ_PERCENT", usual))


def amount(full: int, least: int) -> int:
    """Return the percentage of a full volume, but at least `least`.

    On a database server, a third of `least` is enough: all of `least` is tried on SQLite, and each server has other
    examples.
    """
    if os.environ.get("TEST_DATABASE_URL"):
        least = max(1, least // 3)
    return max(least, round(full * percent() / 100))


def generator(name: str) -> random.Random:
    """Return the random generator of one test. Each test has its own, so that it repeats alone with the same seed."""
    return random.Random(f"{choose_seed()} {name}")


def report(name: str, **counts: object) -> None:
    """Print the counts of a test. pytest shows them if the test fails, or with the option -s."""
    shown = ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in counts.items())
    print(f"\n{name}: seed {choose_seed()}, {shown}", flush=True, file=sys.stdout)  # noqa: T201
