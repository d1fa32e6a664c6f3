"""`cron token`: the secret stands alone on stdout, once."""

from __future__ import annotations

import pytest
from django.contrib.admin.models import LogEntry
from django.utils import timezone as clock

from scheduling.operations.token_shapes import TokenShape
from scheduling.operations.tokens import find_token
from tests.factories import UserFactory
from tests.management.cron.calls import cron

pytestmark = pytest.mark.django_db

ALLOWED = ["scheduling.add_apitoken", "scheduling.view_apitoken", "scheduling.view_scheduler"]


def test_a_token_is_made_listed_and_revoked() -> None:
    UserFactory(username="ann", permissions=ALLOWED)
    UserFactory(username="ben", permissions=ALLOWED)
    made = cron("token", "make", "deploy", "--read-only", "--permission", "scheduling.view_scheduler", "--as", "ann")
    secret = made.out.strip()
    found = find_token(secret, clock.now())
    assert found is not None
    assert (made.out, found.user.get_username(), found.read_only) == (f"{secret}\n", "ann", True)
    assert secret not in made.err
    assert secret not in "".join(LogEntry.objects.values_list("change_message", flat=True))
    document = cron("token", "make", "other", "--days", 3, "--as", "ben", "--json").json
    assert find_token(document["secret"], clock.now()) is not None
    other = TokenShape.model_validate(document["token"])

    everything = cron("token", "list", "--json")
    assert [row["name"] for row in everything.json["tokens"]] == ["other", "deploy"]
    assert secret not in everything.out
    assert [row["name"] for row in cron("token", "list", "--as", "ann", "--json").json["tokens"]] == ["deploy"]
    assert "reading: scheduling.view_scheduler" in cron("token", "list", "--as", "ann").out
    assert cron("token", "revoke", other.prefix, "--as", "ann").code == 3  # the token of another user
    assert cron("token", "revoke", other.prefix, "--as", "ben").code == 0
    assert find_token(document["secret"], clock.now()) is None
    assert "already" in cron("token", "revoke", "other", "--as", "ben").out
    assert cron("token", "revoke", "other", "--as", "ben", "--json").json["token"]["state"] == "revoked"


def test_a_token_is_refused() -> None:
    UserFactory(username="ann", permissions=ALLOWED)
    UserFactory(username="ben", permissions=["scheduling.view_apitoken"])
    for arguments in (
        ["make", "x", "--as", "ben"],
        ["make", "x", "--as", "ann", "--permission", "scheduling.run_scheduler"],
        ["make", "x" * 81, "--as", "ann"],
    ):
        refused = cron("token", *arguments)
        assert (refused.code, refused.out) == (4, ""), arguments
    nameless = cron("token", "make", "--as", "ann", "--json")
    assert (nameless.code, nameless.json["kind"], nameless.json["problems"][0]["field"]) == (2, "refused", "name")
    cron("token", "make", "x", "--as", "ann")
    assert cron("token", "make", "x", "--as", "ann").code == 4
    assert cron("token", "revoke", "\x1b[2J", "--as", "ann").code == 3
