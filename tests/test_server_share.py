"""Several servers share the tests of single pages and of processes, and none is left out."""

from __future__ import annotations

from collections import Counter

import pytest

from scheduling.models import Scheduler
from tests.admin.addresses import Address
from tests.server_share import SHARES, leave_out_other_shares, leaves_out_file, rows_to_walk, shared_pages
from tests.share_names import (
    DOORS,
    NEVER_LEFT_OUT,
    TESTS,
    door_name,
    in_share,
    long_name,
    page_name,
    process_name,
    rest_name,
    shared_name,
)


@pytest.fixture(autouse=True)
def own_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    """The shares that these tests choose are the only ones."""
    for variable in SHARES:
        monkeypatch.delenv(variable, raising=False)


@pytest.mark.parametrize("turn", [0, 1, 2, 20261124])
def test_each_file_is_in_one_share(turn: int) -> None:
    names = [file.name for folder in DOORS for file in folder.rglob("test_*.py")]
    assert len(names) > 50
    for name in names:
        assert sum(in_share(name, share, 3, turn) for share in (1, 2, 3)) == 1


def test_each_file_comes_to_each_share() -> None:
    for share in (1, 2, 3):
        assert any(in_share("test_executions.py", share, 3, turn) for turn in range(3))


def test_of_each_page_one_row_of_each_side_is_walked(monkeypatch: pytest.MonkeyPatch) -> None:
    hidden = [Scheduler(pk=3), Scheduler(pk=4)]
    rows = [Scheduler(pk=1), Scheduler(pk=2), *hidden, None]
    every = [Address(name, f"/{name}/{row and row.pk}/", row=row) for name in ("change", "why") for row in rows]
    monkeypatch.delenv("TEST_ONE_ROW", raising=False)
    assert rows_to_walk(every, hidden) == every
    monkeypatch.setenv("TEST_ONE_ROW", "1")
    assert [one.path for one in rows_to_walk(every, hidden)] == ["/change/1/", "/change/3/", "/why/1/", "/why/3/"]
    monkeypatch.delenv("TEST_ONE_ROW")
    walks = list[list[Address]]()
    for share in (1, 2):
        monkeypatch.setenv("TEST_PAGE_SHARE", f"{share}/2")
        walks.append(rows_to_walk(every, hidden))
    assert all(
        {(one.name, one.row in hidden) for one in walk} == {(o.name, o.row in hidden) for o in every} for walk in walks
    )
    assert {one.path for walk in walks for one in walk} == {one.path for one in every}
    assert len(walks[0]) + len(walks[1]) == len(every) + 4


def test_every_test_is_in_one_share_or_in_all(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever part of the suite runs here, the shares together are the whole of it."""
    every = request.session.items
    for shares in (2, 3):
        left: list[list[pytest.Item]] = []
        for share in range(1, shares + 1):
            monkeypatch.setenv("TEST_SHARE", f"{share}/{shares}")
            items = list(every)
            leave_out_other_shares(request.config, items)
            left.append(items)
        times = Counter(item for items in left for item in items)
        assert all(times[item] == (shares if shared_name(item) is None else 1) for item in every)


def test_the_rest_has_two_halves_and_what_is_never_left_out(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = request.session.items
    halves: list[list[pytest.Item]] = []
    for share in (1, 2):
        monkeypatch.setenv("TEST_REST_SHARE", f"{share}/2")
        items = list(every)
        leave_out_other_shares(request.config, items)
        halves.append(items)
    times = Counter(item for items in halves for item in items)
    assert all(times[item] == (2 if rest_name(item) is None else 1) for item in every)
    assert all(rest_name(item) is None for item in every if item.path.parent.name in NEVER_LEFT_OUT)


def test_each_test_that_the_servers_have_without_a_choice_is_on_one_of_them(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With all three variables, each test of `contract` and `models` without processes is on one server."""
    every = request.session.items
    times = Counter[pytest.Item]()
    for share in (1, 2, 3):
        monkeypatch.setenv("TEST_SERVER_SHARE", f"{share}/3")
        monkeypatch.setenv("TEST_REST_SHARE", f"{share}/9")
        monkeypatch.setenv("TEST_SHARE", f"{share}/24")
        items = list(every)
        leave_out_other_shares(request.config, items)
        times.update(items)
    assert all(times[item] <= 1 for item in every)
    assert all(times[item] == 1 for item in every if shared_name(item) is None and rest_name(item) is None)


def test_of_three_commits_each_long_test_is_in_one(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = request.session.items
    times = Counter[pytest.Item]()
    for share in (1, 2, 3):
        monkeypatch.setenv("TEST_LONG_SHARE", f"{share}/3")
        items = list(every)
        leave_out_other_shares(request.config, items)
        times.update(items)
    assert all(times[item] == (3 if long_name(item) is None else 1) for item in every)


def test_no_share_of_sqlite_takes_its_part_of_another_one(request: pytest.FixtureRequest) -> None:
    """Otherwise, hardly any commit would have the test."""
    for item in request.session.items:
        names = [name(item) for name in (process_name, page_name, door_name, long_name)]
        assert sum(name is not None for name in names) <= 1, item.nodeid


def test_of_two_transports_each_commit_has_one(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    every = request.session.items
    halves: list[list[pytest.Item]] = []
    for share in (1, 2):
        monkeypatch.setenv("TEST_PROCESS_SHARE", f"{share}/2")
        items = list(every)
        leave_out_other_shares(request.config, items)
        halves.append(items)
    names = {item: process_name(item) for item in every}
    times = Counter(item for items in halves for item in items)
    assert all(times[item] == (2 if names[item] is None else 1) for item in every)
    for items in halves:
        pairs = {name for item in items if (name := names[item]) is not None and "[" in name[0]}
        assert all((name, 1 - place) not in pairs for name, place in pairs)


def test_of_two_commits_each_page_is_in_one(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    every, pages = request.session.items, [f"page {number}" for number in range(20)]
    halves, seen = list[list[pytest.Item]](), list[list[str]]()
    for share in (1, 2):
        monkeypatch.setenv("TEST_PAGE_SHARE", f"{share}/2")
        items = list(every)
        leave_out_other_shares(request.config, items)
        halves.append(items)
        seen.append(shared_pages(pages, str))
    times = Counter(item for items in halves for item in items)
    assert all(times[item] == (2 if page_name(item) is None else 1) for item in every)
    assert sorted(seen[0] + seen[1]) == sorted(pages)
    assert all(seen)
    monkeypatch.delenv("TEST_PAGE_SHARE")
    assert shared_pages(pages, str) == pages


@pytest.mark.parametrize("variables", [{"TEST_SHARE": "2/9"}, {"TEST_REST_SHARE": "1/4"}, {"TEST_DOOR_SHARE": "1/3"}])
def test_a_file_that_is_not_loaded_has_no_test_of_the_share(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]
) -> None:
    for variable, value in variables.items():
        monkeypatch.setenv(variable, value)
    items = list(request.session.items)
    leave_out_other_shares(request.config, items)
    assert not [item.nodeid for item in items if leaves_out_file(item.path)]


def test_some_files_are_not_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    files = list(TESTS.rglob("test_*.py"))
    assert not [file for file in files if leaves_out_file(file)]
    for variable in ("TEST_SHARE", "TEST_REST_SHARE", "TEST_DOOR_SHARE"):
        monkeypatch.setenv(variable, "1/3")
        assert len([file for file in files if leaves_out_file(file)]) > 20
        monkeypatch.delenv(variable)


def test_a_wrong_share_is_refused(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    for value in ("4/3", "0/3", "2", "a/b", "2/"):
        monkeypatch.setenv("TEST_SHARE", value)
        with pytest.raises(pytest.UsageError, match="must be like 2/3"):
            leave_out_other_shares(request.config, [])
