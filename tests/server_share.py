"""Choose a share of the tests, so that CI is over in time.

A variable such as `TEST_SHARE=2/9` chooses the second of nine shares of some tests. All other tests run, and without
the variable, all of them do. A share depends on the commit, too: the next commits have the other tests. CI sets on the
database servers, each with another share:

- TEST_SHARE: the tests of pages and of the other doors (`DOORS`), file by file, and the tests with the mark `processes`
  or `rabbitmq`, one by one.
- TEST_REST_SHARE: all other files, without `NEVER_LEFT_OUT` and `ALWAYS`.
- TEST_SERVER_SHARE: these, file by file.

It sets on SQLite TEST_REST_SHARE and:

- TEST_PROCESS_SHARE: the tests with the mark `processes` or `rabbitmq`. No commit has both transports of a test.
- TEST_PAGE_SHARE: other tests that open many pages: those with the mark `browser` or `slow`, the walks over all pages,
  and the pages of the largest of them (`shared_pages`).
- TEST_DOOR_SHARE: the other tests of `DOORS`, file by file.
- TEST_LONG_SHARE: the tests with the mark `long`, one by one.

With `TEST_ONE_ROW=1`, the tests that look for rows of another group take one row of each page instead of all. CI sets
this after the first run, which takes all rows of the pages of its TEST_PAGE_SHARE.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import pytest

from tests.share_names import (
    ALWAYS,
    DOORS,
    HOSTILE_WALKS,
    NEVER_LEFT_OUT,
    SHARED_INSIDE,
    TESTS,
    WALKS,
    door_name,
    in_share,
    long_name,
    page_name,
    process_name,
    rest_name,
    server_name,
    shared_name,
)

if TYPE_CHECKING:
    from tests.admin.addresses import Address

P = TypeVar("P")


def walks_one_row() -> bool:
    """Whether one row of each page is enough."""
    return bool(os.environ.get("TEST_ONE_ROW"))


def rows_to_walk(addresses: Sequence[Address], hidden: Collection[object]) -> list[Address]:
    """All addresses. Of a page that this run does not take whole, the first one of a hidden row and of another row.

    With TEST_ONE_ROW, no page is taken whole; with TEST_PAGE_SHARE, those of the share are.
    """
    names = [] if walks_one_row() else list(dict.fromkeys(address.name for address in addresses))
    whole = set(shared_pages(names, str))
    seen = set[tuple[str, bool]]()
    chosen: list[Address] = []
    for address in addresses:
        side = (address.name, address.row in hidden)
        if address.name in whole or side not in seen:
            chosen.append(address)
        seen.add(side)
    return chosen


def shared_pages(pages: Iterable[P], name_of: Callable[[P], str]) -> list[P]:
    """The pages that belong to this run; without TEST_PAGE_SHARE, all of them.

    Args:
        name_of: the name of a page. Pages with the same name stay together.
    """
    value = os.environ.get("TEST_PAGE_SHARE", "")
    if not value:
        return list(pages)
    (share, shares), turn = _share_of("TEST_PAGE_SHARE", value), commit_number()
    return [page for page in pages if in_share(name_of(page), share, shares, turn)]


def leaves_out_file(path: Path) -> bool:
    """Whether no test of this file is in the shares of this run. Files whose tests are shared one by one are loaded."""
    name = path.name
    if name in WALKS | HOSTILE_WALKS | SHARED_INSIDE or any(one.startswith(name) for one in ALWAYS):
        return False
    if DOORS & set(path.parents):
        return _is_elsewhere("TEST_SHARE", name) or (
            _is_elsewhere("TEST_DOOR_SHARE", name)
            and not _names_a_mark(path, "browser", "slow", "processes", "rabbitmq")
        )
    if path.parent.name in NEVER_LEFT_OUT or _names_a_mark(path, "processes", "rabbitmq", "_FAULTS"):
        return False
    return _is_elsewhere("TEST_REST_SHARE", name)


def _is_elsewhere(variable: str, name: str) -> bool:
    value = os.environ.get(variable, "")
    return bool(value) and not in_share(name, *_share_of(variable, value), commit_number())


def _names_a_mark(path: Path, *marks: str) -> bool:
    return any(mark in path.read_text() for mark in marks)


SHARES: dict[str, Callable[[pytest.Item], str | tuple[str, int] | None]] = {
    "TEST_SHARE": shared_name,
    "TEST_REST_SHARE": rest_name,
    "TEST_PROCESS_SHARE": process_name,
    "TEST_PAGE_SHARE": page_name,
    "TEST_DOOR_SHARE": door_name,
    "TEST_LONG_SHARE": long_name,
    "TEST_SERVER_SHARE": server_name,
}
"""The environment variables, and what each one asks of a test."""


def leave_out_other_shares(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests that another server's run has in its share.

    Raises:
        pytest.UsageError: if a variable is not two numbers with a slash, the first at most the second.
    """
    for variable, name_of in SHARES.items():
        value = os.environ.get(variable, "")
        if value:
            _leave_out(config, items, *_share_of(variable, value), name_of)


def _share_of(variable: str, value: str) -> tuple[int, int]:
    share, _slash, shares = value.partition("/")
    if not (share.isdecimal() and shares.isdecimal() and 1 <= int(share) <= int(shares)):
        raise pytest.UsageError(f"{variable} is {value!r}; it must be like 2/3.")
    return int(share), int(shares)


def _leave_out(
    config: pytest.Config,
    items: list[pytest.Item],
    share: int,
    shares: int,
    name_of: Callable[[pytest.Item], str | tuple[str, int] | None],
) -> None:
    turn = commit_number()
    others = [item for item in items if (name := name_of(item)) is not None and not in_share(name, share, shares, turn)]
    if others:
        left = set(others)
        items[:] = [item for item in items if item not in left]
        config.hook.pytest_deselected(items=others)


@cache
def commit_number() -> int:
    """A number that each commit changes. Where there is no repository, it is 0."""
    try:
        found = subprocess.run(
            ["git", "rev-parse", "HEAD"], cwd=TESTS, capture_output=True, text=True, check=True
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        return 0
    return int(found, 16)
