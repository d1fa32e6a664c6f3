"""Choose which tests of single pages run on this database server, when several servers share them.

`TEST_PAGE_SHARE=2/3` chooses the second of three shares. The share of a file depends on its name and on the commit, so
each file comes to each server after some commits. Without the variable, all tests run.
The tests that walk over every address run on every server, always. With `TEST_ONE_ROW=1`, those that look for rows of
another group take one row of each page instead of all. CI sets this after the first run, which takes all rows.
"""

from __future__ import annotations

import os
import subprocess
import zlib
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.admin.addresses import Address

PAGES = Path(__file__).parent / "admin"
WALKS = {"test_every_address.py", "test_groups_every_address.py", "test_object_pages.py"}


def in_share(name: str, share: int, shares: int, turn: int) -> bool:
    """Whether the tests of this file belong to this share.

    Args:
        name: the file's name.
        share: from 1 to `shares`.
        turn: any number. A difference of one moves each file to the next share.
    """
    return (zlib.crc32(name.encode()) + turn) % shares == share - 1


def walks_one_row() -> bool:
    """Whether one row of each page is enough."""
    return bool(os.environ.get("TEST_ONE_ROW"))


def rows_to_walk(addresses: Sequence[Address], hidden: Collection[object]) -> list[Address]:
    """All addresses; with TEST_ONE_ROW, of each name the first one of a hidden row and the first one of another row."""
    if not walks_one_row():
        return list(addresses)
    first: dict[tuple[str, bool], Address] = {}
    for address in addresses:
        first.setdefault((address.name, address.row in hidden), address)
    return list(first.values())


def leave_out_other_shares(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests of pages that another server's run has in its share.

    Raises:
        pytest.UsageError: if TEST_PAGE_SHARE is not two numbers with a slash, the first at most the second.
    """
    value = os.environ.get("TEST_PAGE_SHARE", "")
    if not value:
        return
    share, _slash, shares = value.partition("/")
    if not (share.isdecimal() and shares.isdecimal() and 1 <= int(share) <= int(shares)):
        raise pytest.UsageError(f"TEST_PAGE_SHARE is {value!r}; it must be like 2/3.")
    turn = commit_number()
    others = [
        item
        for item in items
        if PAGES in item.path.parents
        and item.path.name not in WALKS
        and not in_share(item.path.name, int(share), int(shares), turn)
    ]
    if others:
        left = set(others)
        items[:] = [item for item in items if item not in left]
        config.hook.pytest_deselected(items=others)


def commit_number() -> int:
    """A number that each commit changes. Where there is no repository, it is 0."""
    try:
        found = subprocess.run(
            ["git", "rev-parse", "HEAD"], cwd=PAGES, capture_output=True, text=True, check=True
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        return 0
    return int(found, 16)
