"""What decides to which share of CI a test belongs: its file, its name or its marks. See `server_share`."""

from __future__ import annotations

import zlib
from pathlib import Path

import pytest

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

ALWAYS = {
    # They read every page, and each list of the API.
    "test_hostile_rows.py",
    "test_groups_every_address.py::test_no_address_shows_anything_of_another_group",
    # The package, and two projects that it is installed into: the second one in the part with Django 6.
    "test_package.py",
    "test_company.py",
    "test_plain.py",
}
"""Files and tests that each commit has, too, as those of NEVER_LEFT_OUT."""
IN_ANOTHER_PART = {"test_plain.py"}
"""Those of ALWAYS of which SQLite has a share only."""

SHARED_INSIDE = {
    "test_accessibility.py", "test_hostile_text.py", "test_layout_texts_browser.py", "test_marked_pages.py",
}  # fmt: skip
"""Files whose tests choose their pages by `shared_pages`."""
ONE_WALK = {"test_every_address.py"}
"""Files whose tests share one walk over all pages. They belong to one share."""

NEVER_LEFT_OUT = {"contract", "core", "models"}
"""Folders of tests that each commit has all of: on SQLite, and on one of the servers if they touch the database."""


def in_share(name: str | tuple[str, int], share: int, shares: int, turn: int) -> bool:
    """Whether what has this name belongs to this share.

    Args:
        name: the name of a file or of a test. A pair of a name and a number: different numbers, different shares.
        share: from 1 to `shares`.
        turn: any number. A difference of one moves each file to the next share.
    """
    text, place = name if isinstance(name, tuple) else (name, 0)
    return (zlib.crc32(text.encode()) + place + turn) % shares == share - 1


def shared_name(item: pytest.Item) -> str | None:
    """The name that decides whether a test runs with TEST_SHARE; None if it always does."""
    one = f"{item.path.name}::{getattr(item, 'originalname', item.name)}"
    if {item.path.name, one} & ALWAYS:
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
    if shared_name(item) is not None or DOORS & set(item.path.parents) or item.path.name in ALWAYS:
        return None
    return None if item.path.parent.name in NEVER_LEFT_OUT else item.path.name


TRANSPORTS = ("database", "rabbitmq")


def process_name(item: pytest.Item) -> tuple[str, int] | None:
    """What decides whether a test runs with TEST_PROCESS_SHARE: a name, and the place of its transport.

    None if it always runs.
    """
    if not (item.get_closest_marker("processes") or item.get_closest_marker("rabbitmq")):
        return None
    if item.path.name in ALWAYS - IN_ANOTHER_PART:
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
    if item.path.name in SHARED_INSIDE or one in ALWAYS or process_name(item) is not None:
        return None
    is_walk = item.path.name in WALKS | HOSTILE_WALKS
    if not (is_walk or item.get_closest_marker("browser") or item.get_closest_marker("slow")):
        return None
    return item.path.name if item.path.name in ONE_WALK else f"{item.path.name}::{item.name}"


def door_name(item: pytest.Item) -> str | None:
    """The name that decides whether a test runs with TEST_DOOR_SHARE; None if it always does."""
    one = f"{item.path.name}::{getattr(item, 'originalname', item.name)}"
    if (
        {item.path.name, one} & (ALWAYS | SHARED_INSIDE)
        or page_name(item) is not None
        or process_name(item) is not None
    ):
        return None
    return item.path.name if DOORS & set(item.path.parents) else None


def long_name(item: pytest.Item) -> str | None:
    """The name that decides whether a test runs with TEST_LONG_SHARE; None if it always does."""
    return f"{item.path.name}::{item.name}" if item.get_closest_marker("long") else None


def server_name(item: pytest.Item) -> str | None:
    """The name that decides whether a test runs with TEST_SERVER_SHARE; None if it always does."""
    return item.path.name if shared_name(item) is None and rest_name(item) is None else None
