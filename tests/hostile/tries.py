"""Seeded random examples. A failure names the seed and the number of the example, so that it can be repeated alone.

Three environment variables change the examples:

- `FUZZ_SEED` is the seed. Without it, each session has a new seed.
- `FUZZ_EXAMPLES` is the number of examples of each test. With `TEST_FAST`, each test tries an eighth of its own number.
- `FUZZ_ONLY` is the number of one example. The other examples are left out.

The primary keys of rows are among the values. So an example is repeated exactly only in a new database.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from random import Random

SEED = int(os.environ.get("FUZZ_SEED") or secrets.randbelow(2**32))


def tries(name: str, count: int) -> Iterator[tuple[int, Random]]:
    """Yield the number of each example and its random generator.

    Args:
        name: the test. Each test has examples of its own.
        count: the number of examples if no environment variable changes it.
    """
    wanted = int(os.environ.get("FUZZ_EXAMPLES") or (count // 8 if os.environ.get("TEST_FAST") else count))
    only = os.environ.get("FUZZ_ONLY")
    for number in [int(only)] if only else range(wanted):
        yield number, Random(f"{SEED} {name} {number}")


class Faults:
    """Collects the failures of all examples. Failures for the same reason are listed once, with their count."""

    def __init__(self) -> None:
        self.found: dict[str, list[str]] = {}

    def add(self, reason: str, number: int, example: object) -> None:
        self.found.setdefault(reason, []).append(f"example {number}: {example}")

    def __str__(self) -> str:
        lines = [f"FUZZ_SEED={SEED}"]
        for reason, examples in self.found.items():
            lines += [f"{len(examples)} times {reason}", *(f"    {example}" for example in examples[:3])]
        return "\n".join(lines)

    def check(self) -> None:
        """Fail if anything was found."""
        assert not self.found, str(self)
