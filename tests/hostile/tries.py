"""Numbered random examples, and a list of what failed. `fuzz` has the volumes and the seed.

A failure names the seed and the number of the example. With TEST_FUZZ_ONLY, that example runs alone. The primary keys
of rows are among the values, so an example is repeated exactly only in a new database.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from random import Random

from tests.hostile import fuzz


def tries(name: str, count: int) -> Iterator[tuple[int, Random]]:
    """Yield the number of each example and its random generator.

    Args:
        name: the test. Each test has examples of its own.
        count: the number of examples.
    """
    only = os.environ.get("TEST_FUZZ_ONLY")
    for number in [int(only)] if only else range(count):
        yield number, fuzz.generator(f"{name} {number}")


class Faults:
    """Collects the failures of all examples. Failures for the same reason are listed once, with their count."""

    def __init__(self) -> None:
        self.found: dict[str, list[str]] = {}

    def add(self, reason: str, number: int, example: object) -> None:
        self.found.setdefault(reason, []).append(f"example {number}: {example}")

    def __str__(self) -> str:
        lines = [f"TEST_FUZZ_SEED={fuzz.choose_seed()}"]
        for reason, examples in self.found.items():
            lines += [f"{len(examples)} times {reason}", *(f"    {example}" for example in examples[:3])]
        return "\n".join(lines)

    def check(self) -> None:
        """Fail if anything was found."""
        assert not self.found, str(self)
