"""Users make and revoke their own tokens. A secret is on one page, once, and nowhere else."""

from __future__ import annotations

import logging
import re
from datetime import timedelta
from typing import Any

import django
import pytest
from bs4 import BeautifulSoup
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.test import Client
from django.urls import reverse
from django.utils import timezone as clock
from django.utils.log import AdminEmailHandler

from scheduling.models import ApiToken
from scheduling.operations.tokens import find_token, make_token
from tests.admin.addresses import every_address
from tests.admin.audit import entry_line
from tests.admin.conftest import logged_in, said
from tests.admin.rows import one_of_each
from tests.admin.walk import text_of
from tests.factories import ApiTokenFactory, UserFactory

pytestmark = pytest.mark.django_db

LIST, ADD = "/admin/scheduling/apitoken/", "/admin/scheduling/apitoken/add/"
OWN = ["scheduling.add_apitoken", "scheduling.view_apitoken"]
VIEW, RUN = "scheduling.view_scheduler", "scheduling.run_scheduler"
HOSTILE = "<b>x</b>\u202e\x1b"


def page(name: str, row: ApiToken) -> str:
    return reverse(f"admin:scheduling_apitoken_{name}", args=[row.pk])


def fields(**given: Any) -> dict[str, Any]:
    return {"name": "release pipeline", "expires_at_0": "", "expires_at_1": "", **given}


def secret_on(response: Any) -> str:
    """Return the secret that the page shows."""
    found: list[str] = re.findall(r"cron_[a-z0-9]{8}_[\w-]{43}", response.content.decode())
    assert len(found) == 1
    return found[0]


def errors(response: Any) -> str:
    lists = BeautifulSoup(response.content, "html.parser").select(".errorlist")
    return " ".join(found.get_text(" ", strip=True) for found in lists)


@pytest.fixture
def owner() -> Client:
    """A client of a user who may make tokens, and may view schedules and run them."""
    return logged_in(UserFactory(username="owner", permissions=[*OWN, VIEW, RUN]))


def test_the_form_makes_a_token_for_ninety_days(owner: Client) -> None:
    form = BeautifulSoup(owner.get(ADD).content, "html.parser")
    day = form.select_one("#id_expires_at_0")
    assert day is not None
    assert day["value"] == f"{clock.localtime() + timedelta(days=90):%Y-%m-%d}"
    offered = [box["value"] for box in form.select('[name="chosen"]')]
    # No permission that the user lacks, and not the one to make tokens, because tokens make none.
    assert set(offered) == {"scheduling.view_apitoken", VIEW, RUN}
    time = form.select_one("#id_expires_at_1")
    assert time is not None
    posted = fields(expires_at_0=day["value"], expires_at_1=time["value"], chosen=[VIEW, RUN], read_only="on")
    response = owner.post(ADD, posted)
    assert response.status_code == 200
    assert "no-store" in response["Cache-Control"]
    token = find_token(secret_on(response), clock.now())
    assert token is not None
    assert (token.user.get_username(), token.read_only, token.permissions) == ("owner", True, [RUN, VIEW])
    assert token.expires_at is not None
    assert (token.expires_at - clock.now()).days in (89, 90)
    token = find_token(secret_on(owner.post(ADD, fields(name="no end"))), clock.now())
    assert token is not None
    assert (token.expires_at, token.permissions, token.read_only) == (None, None, False)
    first, second = [entry_line(entry) for entry in LogEntry.objects.order_by("pk")]
    assert "permissions: (empty) -> read only: scheduling.run_scheduler, scheduling.view_scheduler" in first
    assert second.endswith("expires_at: (empty) -> never; permissions: (empty) -> all of the owner")


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"name": ""}, "This field is required."),
        ({"name": "n" * 81}, "at most 80 characters"),
        ({"name": "a\x00b"}, "Null characters are not allowed."),
        ({"name": "taken"}, "A token with this name exists"),
        ({"expires_at_0": "2001-01-01", "expires_at_1": "00:00"}, "This time has passed."),
        ({"chosen": ["scheduling.pause_scheduler"]}, "is not one of the available choices"),
        ({"chosen": ["x' OR 1=1"]}, "is not one of the available choices"),
    ],
)
def test_what_cannot_be_made_is_refused_at_the_field(owner: Client, given: dict[str, Any], sentence: str) -> None:
    ApiTokenFactory(user=User.objects.get(username="owner"), name="taken")
    response = owner.post(ADD, fields(**given))
    assert sentence in errors(response)
    assert not re.search("cron_[a-z0-9]{8}_", response.content.decode())
    assert ApiToken.objects.count() == 1


def test_a_name_that_another_request_took_meanwhile_is_refused(owner: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scheduling.admin.tokens.form.check_token", lambda *_given, **_options: None)
    assert owner.post(ADD, fields()).status_code == 200
    response = owner.post(ADD, fields(), follow=True)
    assert said(response) == ["A token with this name exists, maybe a revoked one. Choose another name."]
    assert ApiToken.objects.count() == 1


def test_users_see_and_revoke_their_own_tokens_only(owner: Client) -> None:
    owner.post(ADD, fields())
    own, other = ApiToken.objects.get(), ApiTokenFactory(name="of another user")
    chief = logged_in(UserFactory(username="chief", permissions=["scheduling.revoke_any_token"]))
    assert "of another user" not in owner.get(LIST).content.decode()
    assert "of another user" not in owner.get(f"{LIST}?q=of+another").content.decode()
    assert "of another user" in chief.get(LIST).content.decode()
    for name in ("change", "revoke", "history"):
        assert said(owner.get(page(name, other), follow=True))[0].startswith("There is no API token")
        assert logged_in(UserFactory(permissions=OWN[:1])).get(page(name, own)).status_code == 403
        assert chief.get(page(name, own)).status_code == 200
    owner.post(page("revoke", other))
    other.refresh_from_db()
    assert other.revoked_at is None
    assert owner.get(page("delete", own)).status_code == 403
    assert owner.post(page("change", own), {"name": "other"}).status_code == 403
    assert "cannot be undone" in owner.get(page("revoke", own)).content.decode()
    own.refresh_from_db()
    assert (own.name, own.revoked_at) == ("release pipeline", None)  # a GET only asks
    assert said(chief.post(page("revoke", own), follow=True)) == ["The token “release pipeline” is revoked."]
    own.refresh_from_db()
    assert own.revoked_by == "chief"
    assert said(owner.post(page("revoke", own), follow=True)) == ["It was revoked already."]
    assert [entry_line(entry) for entry in LogEntry.objects.order_by("pk")][1:] == ["revoke"]
    assert Client(enforce_csrf_checks=True).post(page("revoke", other)).status_code in (302, 403)
    no_maker = logged_in(UserFactory(permissions=OWN[1:]))
    assert no_maker.get(ADD).status_code == no_maker.post(ADD, fields()).status_code == 403
    assert "lets a program use the HTTP API" in no_maker.get(LIST).content.decode()


def test_a_user_with_tokens_can_be_deleted_in_the_admin() -> None:
    user = ApiTokenFactory().user
    helper = logged_in(UserFactory(permissions=["auth.delete_user", "auth.view_user"]))
    assert helper.post(f"/admin/auth/user/{user.pk}/delete/", {"post": "yes"}).status_code == 302
    assert not ApiToken.objects.exists()


def test_a_secret_is_on_one_page_and_nowhere_else(
    editor: Client, caplog: pytest.LogCaptureFixture, settings: Any, tmp_path: Any
) -> None:
    settings.MEDIA_ROOT = tmp_path
    caplog.set_level(logging.DEBUG)
    response = editor.post(ADD, fields())
    secret, token = secret_on(response), ApiToken.objects.get()
    hidden = (secret, secret[14:], token.digest)
    elsewhere = [
        str(response.headers), str(response.cookies), str(editor.cookies), caplog.text, str(LogEntry.objects.values()),
        str([row.get_decoded() for row in Session.objects.all()]), repr(token),
    ]  # fmt: skip
    for text in elsewhere:
        assert not any(part in text for part in hidden)
    rows = {**one_of_each(), "apitoken": [token]}
    paths = {address.path for address in every_address(rows) if address.model in ("apitoken", "user", "")}
    paths |= {f"{LIST}?q={secret[14:]}", f"{LIST}?q={token.digest[:20]}", f"{LIST}?o=3", "/admin/"}
    for path in sorted(paths - {"/admin/logout/"}):
        text = text_of(editor.get(path)).replace(f"{LIST}?q=", "")
        shown = [part for part in hidden if part in text and part not in path]
        assert shown == [], path
    # The page of the POST is not stored. The same POST again makes nothing.
    assert "exists, maybe a revoked one" in errors(editor.post(ADD, fields()))
    for lookup in ("digest__startswith=a", f"digest={token.digest}", "digest__regex=.", "user__password__startswith=a"):
        answer = editor.get(f"{LIST}?{lookup}")
        assert (answer.status_code, answer.get("Location", "e=1")[-3:]) in ((302, "e=1"), (400, "e=1")), lookup


class Broken:
    """A text that fails when the page is written."""

    def __init__(self, *_given: Any) -> None:
        """Take what `words.access` takes."""

    def __str__(self) -> str:
        raise RuntimeError("the disk is full")


def test_a_report_of_an_error_has_no_secret(editor: Client, settings: Any, mailoutbox: Any, monkeypatch: Any) -> None:
    """Django mails a report with the variables of each function to ADMINS."""
    made: list[str] = []

    def broken(*_arguments: Any, **_options: Any) -> None:
        raise RuntimeError("the disk is full")

    def remembered(*given: Any, **options: Any) -> Any:
        token, secret = make_token(*given, **options)
        made.extend((secret, token.digest))
        return token, secret

    settings.ADMINS = ["admin@example.com"] if django.VERSION >= (6,) else [("admin", "admin@example.com")]
    handler, logger = AdminEmailHandler(include_html=True), logging.getLogger("django.request")
    logger.addHandler(handler)
    monkeypatch.setattr("scheduling.admin.tokens.admin.make_token", remembered)
    editor.raise_request_exception = False
    try:
        for place, fails in (("common.hold_notice.add_notice", broken), ("tokens.words.access", Broken)):
            with monkeypatch.context() as patch:
                patch.setattr(f"scheduling.admin.{place}", fails)
                assert editor.post(ADD, fields()).status_code == 500
        with monkeypatch.context() as patch:
            patch.setattr("scheduling.operations.tokens._name_taken", broken)
            patch.setattr("scheduling.operations.tokens.check_token", broken)
            assert editor.post(ADD, fields(name="n")).status_code == 500
    finally:
        logger.removeHandler(handler)
    assert len(mailoutbox) == 3
    assert len(made) == 4
    for message in mailoutbox:
        text = f"{message.body} {message.alternatives}"
        assert "the disk is full" in text
        assert "in changeform_view" in message.body  # also the page is written where no variable is reported
        assert [part for part in made if part in text or part[14:] in text] == []
        assert not re.search(r"cron_[a-z0-9]{8}_[\w-]{43}|\b[0-9a-f]{64}\b", text)


def test_hostile_texts_are_shown_as_signs(editor: Client) -> None:
    row = ApiTokenFactory(
        name=HOSTILE, prefix="<b>\u202e", revoked_by=HOSTILE, revoked_at=clock.now(), permissions=[HOSTILE, None, 7],
        user=UserFactory(username=HOSTILE),
    )  # fmt: skip
    ApiTokenFactory(permissions={"a": 1})
    ApiTokenFactory(permissions=[f"scheduling.p{n}" for n in range(3_000)])
    for path in (LIST, *(page(name, row) for name in ("change", "revoke", "history"))):
        text = editor.get(path).content.decode()
        assert "<b>x</b>" not in text, path
        assert "\u202e" not in text, path
        assert "\\u202e" in text, path
    assert "3000 permissions" in editor.get(LIST).content.decode()
    editor.post(page("revoke", ApiToken.objects.latest("pk")))
