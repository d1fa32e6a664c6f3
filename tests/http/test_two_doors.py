"""The HTTP API and the pages of the admin answer alike: both allow, both refuse, or both say that there is no such row.

The document of the API names the operations, so a new operation without a page in `operations.py` fails here.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.test import Client

from scheduling.handlers import find, register
from scheduling.http.documents import openapi
from scheduling.management.groups import EDITOR, OPERATOR, VIEWER, make_groups, wanted
from scheduling.models import Scheduler
from tests.factories import ProcessFactory, ReminderFactory, ReportFactory, UserFactory
from tests.http.doors import Word, ask_admin, ask_api, by_session, by_token
from tests.http.operations import OPERATIONS, REPORT, Operation, Rows, rows_of

pytestmark = [pytest.mark.django_db, pytest.mark.database]

NEEDED = "auth.view_permission"

OF_ROWS = {key for key, one in OPERATIONS.items() if isinstance(one, Operation) and one.is_of_rows} - {
    "POST /schedulers", "POST /calendars"
}  # fmt: skip
"""The operations on a row that exists."""
SHARED = {"PATCH /calendars/{calendar_id}", "DELETE /calendars/{calendar_id}"}
"""Calendars without a group belong to all groups. Users who do not see all groups leave them alone."""
ACTS = {key for key in OF_ROWS if not key.startswith("GET") and not key.endswith("preview")}


@dataclass(frozen=True)
class House:
    """The rows without a group, of the user's group, of a foreign group, and of a worker that asks for a permission."""

    team: Group
    free: Rows
    own: Rows
    foreign: Rows
    moved: Rows
    guarded: Rows

    def user(self, *roles: str, **columns: Any) -> User:
        """A member of the group and of the roles."""
        found: User = UserFactory(**columns)
        found.groups.add(self.team, *Group.objects.filter(name__in=roles))
        return found

    def rows(self, names: str) -> list[Rows]:
        return [getattr(self, name) for name in names.split()]


@pytest.fixture
def house(db: None) -> Iterator[House]:
    list(make_groups())
    team, others = (Group.objects.create(name=name) for name in ("team", "others"))
    plain = find("worker", "tests.fail")
    ReportFactory(controller=REPORT)
    ReminderFactory()
    ProcessFactory()
    moved = rows_of("moved", None)  # the schedule has got a foreign group later
    Scheduler.objects.filter(pk__in=[moved.schedule.pk, moved.paused.pk]).update(group=others)
    register(replace(plain, permission=NEEDED))
    logging.disable(logging.WARNING)  # Django writes the traceback of each refusal
    yield House(
        team, rows_of("free", None), rows_of("own", team), rows_of("foreign", others), moved,
        rows_of("guarded", None, "tests.fail"),
    )  # fmt: skip
    logging.disable(logging.NOTSET)
    register(plain)


def operations() -> Iterator[tuple[str, Operation]]:
    """Each operation with its method and path. One that has several pages comes several times."""
    for key, found in OPERATIONS.items():
        for one in found if isinstance(found, tuple) else (found,):
            yield key, one


def differences(
    admin: Client, apis: Sequence[Client], rows: Sequence[Rows], only_rows: bool = False
) -> tuple[str, dict[Word, set[str]]]:
    """Ask the admin, and each client of the API, for each operation.

    Operations that are not about rows with a group are asked for the first rows only.

    Returns:
        What the clients answer differently, and which operations got which word.
    """
    found: list[str] = []
    words: dict[Word, set[str]] = {word: set() for word in Word}
    for key, one in operations():
        method, _space, path = key.partition(" ")
        for some in rows if one.is_of_rows else () if only_rows else rows[:1]:
            request = one.api(some)
            request = replace(request, path=path.lstrip("/").format(**one.values(some)) + request.path, method=method)
            left = ask_admin(admin, one.admin(some), one.is_act)
            words[left.word].add(key)
            for number, api in enumerate(apis):
                right = ask_api(api, request, one.is_act)
                if left != right:
                    found.append(f"{key}, {some.name}: the admin {left}, client {number} of the API {right}")
    return "\n".join(found), words


def test_the_table_has_each_operation_of_the_document() -> None:
    paths = openapi("/cron/")["paths"]
    known = {f"{method.upper()} {path.removeprefix('/cron')}" for path, found in paths.items() for method in found}
    assert known == set(OPERATIONS)


PEOPLE: dict[str, tuple[tuple[str, ...], str]] = {
    "viewer": ((VIEWER,), "free own foreign"),
    "operator": ((OPERATOR,), "free own foreign guarded"),
    "editor": ((EDITOR,), "own free foreign moved guarded"),
    "no role": ((), "free foreign"),
}
"""The roles of each person, and the rows that the person asks for."""


@pytest.mark.slow
@pytest.mark.parametrize("name", PEOPLE)
def test_each_role_meets_the_same_at_both_doors(house: House, name: str) -> None:
    """A token of an editor that only reads is a viewer, and one with the permissions of an operator is an operator."""
    roles, rows = PEOPLE[name]
    user, operates = house.user(*roles), [_name_of(one) for one in wanted(OPERATOR)]
    apis = [by_token(user)]
    if name == "viewer":
        apis.append(by_token(house.user(EDITOR), read_only=True, permissions=operates))
    elif name == "operator":
        apis += [by_session(user), by_token(house.user(EDITOR), permissions=operates)]
    found, words = differences(by_session(user), apis, house.rows(rows))
    assert not found, found
    if name == "editor":  # else a request with a wrong value would pass
        assert words[Word.DONE] == set(OPERATIONS)
        assert words[Word.MISSING] == OF_ROWS
        assert words[Word.REFUSED] == ACTS
    if name == "no role":
        assert words[Word.REFUSED] == set(OPERATIONS)


def test_a_superuser_is_refused_nothing(house: House) -> None:
    user = house.user(superuser=True)
    found, words = differences(by_session(user), [by_session(user)], house.rows("foreign guarded"))
    assert not found, found
    assert {word: keys for word, keys in words.items() if keys} == {Word.DONE: set(OPERATIONS)}


def test_a_user_who_sees_no_rows_acts_on_none(house: House) -> None:
    """The user has each permission but those to view or change rows."""
    user = UserFactory()
    hidden = ("view_", "change_")
    user.user_permissions.set(one for one in wanted(EDITOR) if not one.codename.startswith(hidden))
    found, words = differences(by_session(user), [by_token(user)], [house.free], only_rows=True)
    assert not found, found
    assert words[Word.REFUSED] == OF_ROWS


@pytest.mark.parametrize("column", ["is_staff", "is_active"])
def test_a_user_who_may_not_log_in_enters_by_no_door(house: House, column: str) -> None:
    user = house.user(EDITOR)
    admin, apis = by_session(user), [by_session(user), by_token(user)]
    setattr(user, column, False)
    user.save()
    found, words = differences(admin, apis, [house.free])
    assert not found, found
    assert words[Word.LOGIN] == set(OPERATIONS)


def test_a_token_follows_its_owner_from_one_request_to_the_next(house: House) -> None:
    """The owner loses the permission that the code asks for, then the group, then the role."""
    user = house.user(EDITOR)
    user.user_permissions.add(Permission.objects.get(codename="view_permission"))
    admin, api = by_session(user), by_token(user)

    def asked(rows: Rows) -> dict[Word, set[str]]:
        found, words = differences(admin, [api], [rows], only_rows=True)
        assert not found, found
        return words

    assert asked(house.guarded)[Word.REFUSED] == SHARED
    user.user_permissions.clear()
    assert asked(house.guarded)[Word.REFUSED] == ACTS
    user.groups.remove(house.team)
    assert asked(house.own)[Word.MISSING] == OF_ROWS
    user.groups.clear()
    assert not asked(house.free)[Word.DONE]


def _name_of(permission: Permission) -> str:
    return f"{permission.content_type.app_label}.{permission.codename}"
