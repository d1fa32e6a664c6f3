"""A token opens only with its own secret, only while it is live, and allows no more than its owner may do now."""

from __future__ import annotations

import logging
import random
import re
from datetime import datetime, timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import Permission, User
from django.db import DatabaseError, Error, IntegrityError, connection, transaction
from django.utils import timezone as clock

from scheduling.core.api_secret import digest_of
from scheduling.models import AnsweredRequest, ApiToken
from scheduling.models.visibility import EVERYTHING, visibility_of
from scheduling.operations import tokens
from scheduling.operations.tokens import TokenRefused, check_token, find_token, make_token, may, revoke, tokens_seen_by
from tests.factories import (
    AnsweredRequestFactory,
    ApiTokenFactory,
    GroupFactory,
    SchedulerFactory,
    UserFactory,
    secret_of,
)
from tests.hostile.values import columns, hostile_value, lenient

pytestmark = pytest.mark.django_db

VIEW, RUN = "scheduling.view_scheduler", "scheduling.run_scheduler"
SEES_ALL = "scheduling.view_all_groups"


def now() -> datetime:
    return clock.now()


def test_a_new_token_is_found_by_its_secret_and_stores_none() -> None:
    user = UserFactory()
    token, secret = make_token(user, "  release \n pipeline ", expires_at=now() + timedelta(days=1))
    assert secret.startswith(f"{token.prefix}_")
    assert (len(secret), len(token.prefix), token.name) == (57, 13, "release pipeline")
    stored = ApiToken.objects.values().get()
    assert secret not in str(stored)
    assert secret[14:] not in str(stored)
    assert stored["digest"] == digest_of(secret)
    found = find_token(secret, now())
    assert found == token
    assert found.user == user
    assert len({make_token(user, str(n))[1] for n in range(9)}) == 9


def bad_secrets(good: str) -> list[Any]:
    """Return a hundred secrets of no live token: one sign is replaced, left out or added, or the form is wrong."""
    pick, made = random.Random(7), []
    for number in range(80):
        place = pick.randrange(len(good))
        other = pick.choice([sign for sign in "abcXYZ019-_" if sign != good[place]])
        made.append([good[:place] + other + good[place + 1 :], good[:place] + good[place + 1 :],
                     good[:place] + other + good[place:]][number % 3])  # fmt: skip
    whole = [
        "", " ", "cron_", good.upper(), f" {good}", f"{good}\n", f"{good}\x00", f"\x00{good}", good[:14], good * 4,
        f"Bearer {good}", good.replace("cron_", "crön_"), good[:-1] + "é", good[:-1] + "\ud800", digest_of(good),
        "x" * 201, None, 7, good.encode(), [good],
    ]  # fmt: skip
    return [*made, *whole]


def test_a_hundred_of_a_hundred_bad_secrets_are_refused(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    token, secret = make_token(UserFactory(), "n")
    bad = bad_secrets(secret)
    assert len(bad) == 100
    assert secret not in bad
    assert [text for text in bad if find_token(text, now()) is not None] == []
    assert find_token(secret, now()) == token
    ApiToken.objects.update(digest=token.digest.upper())  # MariaDB finds it all the same
    assert find_token(secret, now()) is None
    assert [line for line in caplog.messages if secret[14:] in line or token.digest in line] == []


def test_expired_revoked_and_ownerless_tokens_are_refused() -> None:
    begin = now()
    user = UserFactory()
    token, secret = make_token(user, "n", expires_at=begin + timedelta(hours=1))
    assert find_token(secret, begin + timedelta(minutes=59)) == token
    assert find_token(secret, begin + timedelta(hours=1)) is None
    User.objects.update(is_active=False)
    assert find_token(secret, begin) is None
    User.objects.update(is_active=True)
    assert find_token(secret, begin) == token
    assert revoke(token, "ann", begin)
    assert find_token(secret, begin) is None
    assert not revoke(token, "ben", begin + timedelta(hours=1))  # the first user stays
    assert (token.revoked_by, token.revoked_at) == ("ann", begin)
    _other, second = make_token(user, "m")
    user.delete()
    assert find_token(second, begin) is None
    assert not ApiToken.objects.exists()
    token.pk = 10**6
    assert not revoke(token, "ann", begin)  # the cleanup has removed it


def test_a_token_allows_what_the_owner_may_do_now() -> None:
    user = UserFactory(permissions=[VIEW, RUN, SEES_ALL])
    secrets = {
        "all": make_token(user, "all")[1],
        "read": make_token(user, "read", read_only=True)[1],
        "few": make_token(user, "few", permissions=[RUN])[1],
        "both": make_token(user, "both", permissions=[RUN, VIEW], read_only=True)[1],
    }

    def allowed() -> dict[str, list[bool]]:
        found = {name: find_token(secret, now()) for name, secret in secrets.items()}
        return {name: [may(row, code) for code in (VIEW, RUN, SEES_ALL)] for name, row in found.items() if row}

    expected = {"all": [True, True, True], "read": [True, False, True], "few": [False, True, False],
                "both": [True, False, False]}  # fmt: skip
    assert allowed() == expected
    few: Any = find_token(secrets["few"], now())
    everything: Any = find_token(secrets["all"], now())
    SchedulerFactory(group=GroupFactory())
    assert visibility_of(everything.user) is EVERYTHING
    assert visibility_of(few.user).is_limited  # the rules that ask the user hold for the token
    assert (few.user.has_perm(RUN), few.user.has_perms([RUN, VIEW])) == (True, False)
    assert not few.user.has_perm(RUN, few)
    assert async_to_sync(few.user.ahas_perm)(SEES_ALL) is False
    user.user_permissions.remove(Permission.objects.get(codename="run_scheduler"))
    lost = {"all": [True, False, True], "read": [True, False, True], "few": [False, False, False],
            "both": [True, False, False]}  # fmt: skip
    assert allowed() == lost
    User.objects.update(is_superuser=True)
    assert allowed() == expected


def test_a_token_makes_no_tokens() -> None:
    _token, secret = make_token(UserFactory(superuser=True), "n", permissions=["scheduling.add_apitoken"])
    found: Any = find_token(secret, now())
    with pytest.raises(TokenRefused, match="A token cannot make tokens"):  # the new one would allow more
        make_token(found.user, "m")
    assert ApiToken.objects.count() == 1


@pytest.mark.parametrize(
    ("field", "said", "given"),
    [
        ("name", "Give the token a name.", {"name": " \n "}),
        ("name", "more than 80 characters", {"name": "n" * 81}),
        ("name", "cannot be stored", {"name": "a\x00b"}),
        ("name", "cannot be stored", {"name": "\ud800"}),
        ("name", "exists, maybe a revoked one", {"name": "taken"}),
        ("expires_at", "This time has passed.", {"expires_at": clock.now()}),
        ("expires_at", "no time zone", {"expires_at": datetime(2999, 1, 1)}),
        ("permissions", "Choose at least one", {"permissions": []}),
        ("permissions", "at most 500", {"permissions": [f"a.view_{n}" for n in range(501)]}),
        ("permissions", "no permission “scheduling.view_nothing”", {"permissions": ["scheduling.view_nothing"]}),
        ("permissions", "There is no permission “auth.view_scheduler”", {"permissions": [VIEW, "auth.view_scheduler"]}),
        ("permissions", r"There is no permission “a\x00.\u202e”", {"permissions": ["a\x00.\u202e"]}),
        ("permissions", "The owner lacks the permission", {"permissions": [RUN]}),
        ("user", "An inactive user gets no token.", {"user": "inactive"}),
        ("user", "An inactive user gets no token.", {"user": "deleted"}),
    ],
)  # fmt: skip
def test_what_cannot_be_made_says_why(field: str, said: str, given: dict[str, Any]) -> None:
    user = UserFactory(permissions=[VIEW])
    ApiTokenFactory(user=user, name="taken", revoked=True)
    given = dict(given)
    owner = given.pop("user", "")
    if owner == "inactive":
        User.objects.update(is_active=False)  # the user object of the request does not know it yet
    elif owner == "deleted":
        User.objects.all().delete()
    before = ApiToken.objects.count()
    with pytest.raises(TokenRefused, match=re.escape(said)) as caught:
        make_token(user, **{"name": "n", **given})
    assert caught.value.field == field
    assert ApiToken.objects.count() == before


def test_a_user_has_fifty_live_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    user = UserFactory()
    for number in range(50):
        ApiTokenFactory(user=user, name=f"n{number}", expires_at=now() + timedelta(days=1))
    ApiTokenFactory(user=user, revoked=True)
    ApiTokenFactory(user=user, expired=True)
    with pytest.raises(ValueError, match="at most 50 live tokens"):
        make_token(user, "n")
    revoke(ApiToken.objects.get(name="n7"), "ann", now())
    make_token(user, "n")
    # Another request has taken the name after the check.
    revoke(ApiToken.objects.get(name="n8"), "ann", now())
    monkeypatch.setattr(tokens, "_check_name", lambda *_arguments: None)
    with pytest.raises(ValueError, match="A token with this name exists"):
        make_token(user, "n")


def test_the_use_is_noted_once_a_minute_and_never_fails_a_request(monkeypatch: pytest.MonkeyPatch) -> None:
    begin = now().replace(microsecond=0)
    _token, secret = make_token(UserFactory(), "n")

    def noted(at: datetime) -> datetime | None:
        assert find_token(secret, at) is not None
        return ApiToken.objects.get().last_used_at

    assert noted(begin) == begin
    assert noted(begin + timedelta(seconds=59)) == begin
    later = begin + timedelta(seconds=60)
    assert noted(later) == later
    assert noted(begin) == begin  # the clock was ahead before
    with monkeypatch.context() as patch:

        def refused(*_arguments: Any, **_options: Any) -> None:
            with connection.cursor() as cursor:
                cursor.execute("SELECT 1 FROM no_such_table")

        patch.setattr("scheduling.models.api_token.ApiTokenQuerySet.update", refused)
        assert noted(later) == begin
    assert User.objects.exists()  # the transaction of the request goes on


def stored(column: str, pk: int, value: Any) -> bool:
    """Write a value by plain SQL. Return whether the database has taken it."""
    try:
        with lenient(), transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f"UPDATE scheduling_apitoken SET {column} = %s WHERE id = %s", [value, pk])
    except (DatabaseError, Error, ValueError, OverflowError, TypeError):
        return False
    return True


@pytest.mark.django_db(transaction=True)  # `lenient` closes the connection
def test_hostile_rows_open_nothing_and_raise_nothing() -> None:
    """Plain SQL may have written any value into the row of a token."""
    pick, taken = random.Random(11), 0
    fields = [field for field in columns(ApiToken, keys=False) if field.name != "digest"]
    user = UserFactory(permissions=[VIEW])
    for number in range(120):
        begin, field = now(), fields[number % len(fields)]
        row = ApiTokenFactory(user=user, number=number, expires_at=begin, revoked=number % 2)
        value = hostile_value(pick, field)
        taken += stored(str(field.column), row.pk, value)
        found = find_token(secret_of(number), begin)
        if found is not None:  # the value is a later end, or no revocation
            assert field.name in ("expires_at", "revoked_at"), value
            assert found.expires_at is None or found.expires_at > begin, value
            assert not may(found, RUN), value
        ApiToken.objects.filter(pk=row.pk)._raw_delete(ApiToken.objects.db)
    assert taken > 20


@pytest.mark.skipif(connection.vendor != "sqlite", reason="other databases refuse these values")
@pytest.mark.parametrize(
    ("column", "value"),
    [("expires_at", "never"), ("expires_at", ""), ("revoked_at", "yesterday"), ("permissions", '"all"')],
)
def test_a_value_that_cannot_be_read_does_not_open_the_token(column: str, value: str) -> None:
    _token, secret = make_token(UserFactory(), "n", expires_at=now() + timedelta(days=1))
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE scheduling_apitoken SET {column} = %s", [value])
    assert find_token(secret, now()) is None


def test_users_see_their_own_tokens() -> None:
    own, other = ApiTokenFactory(), ApiTokenFactory()
    assert list(tokens_seen_by(own.user)) == [own]
    for chief in (UserFactory(permissions=["scheduling.revoke_any_token"]), UserFactory(superuser=True)):
        assert set(tokens_seen_by(chief)) == {own, other}
    with pytest.raises(ValueError, match="inactive"):
        check_token(None, "n")


def test_keys_of_requests_differ_by_case_and_by_owner() -> None:
    for owner, key in (
        ("user:1", "a"),
        ("user:1", "A"),
        ("user:1", "a "),
        ("user:11", "a"),
        ("user:1", "1a"),
        ("token:1", "a"),
    ):
        AnsweredRequestFactory(owner=owner, key=key)
    with pytest.raises((IntegrityError, DatabaseError)), transaction.atomic():
        AnsweredRequestFactory(owner="user:1", key="A")
    assert AnsweredRequest.objects.count() == 6
