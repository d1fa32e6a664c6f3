"""Choose which tests run on this server, when several servers share them.

`TEST_SHARE=2/3` chooses the second of three shares. Shared are the tests of single pages, file by file, and the tests
with the mark `processes` or `rabbitmq`, one by one. A share depends on the commit, too. So each test comes to each
server after some commits. Without the variable, all tests run.
All other tests run on every server, always.
With `TEST_ONE_ROW=1`, the tests that look for rows of another group take one row of each page instead of all. CI sets
this after the first run, which takes all rows.
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
ON_EACH_SERVER = {
    # They walk over all pages.
    "test_every_address.py", "test_groups_every_address.py", "test_object_pages.py",
    # It runs on PostgreSQL only.
    "test_pgbouncer.py",
}  # fmt: skip
"""Files that are not shared."""


def in_share(name: str, share: int, shares: int, turn: int) -> bool:
    """Whether what has this name belongs to this share.

    Args:
        name: the name of a file or of a test.
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


def shared_name(item: pytest.Item) -> str | None:
    """The name that decides to which share this test belongs; None if it runs on every server."""
    if item.path.name in ON_EACH_SERVER:
        return None
    if PAGES in item.path.parents:
        return item.path.name
    if item.get_closest_marker("rabbitmq4"):
        # The parameters name the server.
        return f"{item.path.name}::{getattr(item, 'originalname', item.name)}"
    if item.get_closest_marker("processes") or item.get_closest_marker("rabbitmq"):
        return f"{item.path.name}::{item.name}"
    return None


def leave_out_other_shares(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests that another server's run has in its share.

    Raises:
        pytest.UsageError: if TEST_SHARE is not two numbers with a slash, the first at most the second.
    """
    value = os.environ.get("TEST_SHARE", "")
    if not value:
        return
    share, _slash, shares = value.partition("/")
    if not (share.isdecimal() and shares.isdecimal() and 1 <= int(share) <= int(shares)):
        raise pytest.UsageError(f"TEST_SHARE is {value!r}; it must be like 2/3.")
    turn = commit_number()
    others = [
        item
        for item in items
        if (name := shared_name(item)) is not None and not in_share(name, int(share), int(shares), turn)
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
