"""Choose which tests run on this server, when several servers share them.

`TEST_SHARE=2/9` chooses the second of nine shares. Shared are the tests of pages and of the other doors (`DOORS`),
file by file, and the tests with the mark `processes` or `rabbitmq`, one by one. A share depends on the commit, too. So
each test comes to each server after some commits. Without the variable, all tests run.
All other tests run on every server. `TEST_REST_SHARE=1/4` chooses among them, too, file by file. CI gives each server
another share. The tests of `contract` and `models` are never left out.
`TEST_PROCESS_SHARE=1/5` chooses among the tests with the mark `processes` or `rabbitmq`, for SQLite. No commit has both
transports of a test. The next commits have the others. All other tests stay. CI sets it.
`TEST_PAGE_SHARE=1/4` chooses among the tests that open many pages: those with the mark `browser` or `slow`, the walks
over all pages, and the pages of the largest of them (`shared_pages`). The next commits have the others. CI sets it.
`TEST_DOOR_SHARE=1/3` chooses among the tests of `DOORS` that TEST_PAGE_SHARE does not choose among, file by file. The
next commits have the others. CI sets it for SQLite.
With `TEST_ONE_ROW=1`, the tests that look for rows of another group take one row of each page instead of all. CI sets
this after the first run, which takes all rows of the pages of its TEST_PAGE_SHARE.
"""

from __future__ import annotations

import os
import subprocess
import zlib
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import pytest

if TYPE_CHECKING:
    from tests.admin.addresses import Address

P = TypeVar("P")

TESTS = Path(__file__).parent
DOORS = {TESTS / folder for folder in ("admin", "http", "metrics", "operations", "management/cron", "alerts", "pings")}
"""Folders with the tests of pages, of the other doors, which ask the same queries, and of what is told."""
WALKS = {
    "test_every_address.py", "test_groups_every_address.py", "test_object_pages.py", "test_two_doors.py",
    "test_second_site.py",
}  # fmt: skip
"""Files that walk over all pages. Their tests are shared one by one."""
HOSTILE_WALKS = {"test_forms.py", "test_queries.py"}
"""Files that send hostile values to all pages. On SQLite, not each commit has them."""

ON_EACH_SERVER = {
    # They read every page, and each list of the API.
    "test_hostile_rows.py",
    "test_groups_every_address.py::test_no_address_shows_anything_of_another_group",
    # It runs on PostgreSQL only.
    "test_pgbouncer.py",
    # Of the hosts, Django 6 has this one only.
    "test_plain.py",
}
"""Files and tests that are not shared."""

SHARED_INSIDE = {
    "test_accessibility.py", "test_hostile_text.py", "test_layout_texts_browser.py", "test_marked_pages.py",
}  # fmt: skip
"""Files whose tests choose their pages by `shared_pages`."""
ONE_WALK = {"test_every_address.py"}
"""Files whose tests share one walk over all pages. They belong to one share."""

NEVER_LEFT_OUT = {"contract", "models"}
"""Folders of tests of which each database server has all that are not shared."""


def in_share(name: str | tuple[str, int], share: int, shares: int, turn: int) -> bool:
    """Whether what has this name belongs to this share.

    Args:
        name: the name of a file or of a test. A pair of a name and a number: different numbers, different shares.
        share: from 1 to `shares`.
        turn: any number. A difference of one moves each file to the next share.
    """
    text, place = name if isinstance(name, tuple) else (name, 0)
    return (zlib.crc32(text.encode()) + place + turn) % shares == share - 1


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


def shared_name(item: pytest.Item) -> str | None:
    """The name that decides to which share this test belongs; None if it runs on every server."""
    one = f"{item.path.name}::{getattr(item, 'originalname', item.name)}"
    if {item.path.name, one} & ON_EACH_SERVER:
        return None
    if item.path.name in WALKS:
        return f"{item.path.name}::{item.name}"
    if DOORS & set(item.path.parents):
        return item.path.name
    if item.get_closest_marker("rabbitmq4"):
        # The parameters name the server.
        return one
    if item.get_closest_marker("processes") or item.get_closest_marker("rabbitmq"):
        return f"{item.path.name}::{item.name}"
    return None


def rest_name(item: pytest.Item) -> str | None:
    """The name that decides whether a test, which is not shared, runs with TEST_REST_SHARE; None if it always does."""
    if shared_name(item) is not None or DOORS & set(item.path.parents) or item.path.name in ON_EACH_SERVER:
        return None
    return None if item.path.parent.name in NEVER_LEFT_OUT else item.path.name


TRANSPORTS = ("database", "rabbitmq")


def process_name(item: pytest.Item) -> tuple[str, int] | None:
    """What decides whether a test runs with TEST_PROCESS_SHARE: a name, and the place of its transport.

    None if it always runs.
    """
    if not (item.get_closest_marker("processes") or item.get_closest_marker("rabbitmq")):
        return None
    one = f"{item.path.name}::{getattr(item, 'originalname', item.name)}"
    parameters = getattr(getattr(item, "callspec", None), "id", "").split("-")
    for place, transport in enumerate(TRANSPORTS):
        if transport in parameters:
            others = "-".join(part for part in parameters if part != transport)
            return f"{one}[{others}]", place
    return f"{item.path.name}::{item.name}", 0


def page_name(item: pytest.Item) -> str | None:
    """The name that decides whether a test runs with TEST_PAGE_SHARE; None if it always does."""
    one = f"{item.path.name}::{getattr(item, 'originalname', item.name)}"
    if item.path.name in SHARED_INSIDE or one in ON_EACH_SERVER:
        return None
    is_walk = item.path.name in WALKS | HOSTILE_WALKS
    if not (is_walk or item.get_closest_marker("browser") or item.get_closest_marker("slow")):
        return None
    return item.path.name if item.path.name in ONE_WALK else f"{item.path.name}::{item.name}"


def door_name(item: pytest.Item) -> str | None:
    """The name that decides whether a test runs with TEST_DOOR_SHARE; None if it always does."""
    one = f"{item.path.name}::{getattr(item, 'originalname', item.name)}"
    is_shared_otherwise = {item.path.name, one} & (ON_EACH_SERVER | SHARED_INSIDE) or page_name(item) is not None
    return item.path.name if DOORS & set(item.path.parents) and not is_shared_otherwise else None


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
    if name in WALKS | HOSTILE_WALKS | SHARED_INSIDE or any(one.startswith(name) for one in ON_EACH_SERVER):
        return False
    if DOORS & set(path.parents):
        return _is_elsewhere("TEST_SHARE", name) or (
            _is_elsewhere("TEST_DOOR_SHARE", name) and not _names_a_mark(path, "browser", "slow")
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
