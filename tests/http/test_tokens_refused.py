"""A token that is not valid, or not where it belongs, opens nothing. No log, page, answer or report shows a secret."""

from __future__ import annotations

import http.client
import json
import logging
import random
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from urllib.parse import quote

import pytest
from django.contrib.auth.models import Group, User
from django.core.signals import got_request_exception
from django.http import HttpRequest
from django.test import Client
from django.utils import timezone as clock
from django.views.debug import ExceptionReporter

from scheduling.logs import JsonFormatter, LineFormatter
from scheduling.management.groups import EDITOR, make_groups
from scheduling.models import ApiToken
from scheduling.operations import schedules, tokens
from scheduling.operations.tokens import make_token, revoke
from tests.admin.walk import text_of
from tests.admin.world import changed, world
from tests.factories import UserFactory
from tests.http.doors import by_session
from tests.http.operations import OPERATIONS, Operation, Rows, rows_of
from tests.support import Commands, wait_for

pytestmark = pytest.mark.django_db

MANY = 100
SECRET = re.compile(r"cron_[a-z0-9]{8}_[A-Za-z0-9_-]{20,}")


@dataclass
class Sent:
    """A request with a token.

    Args:
        headers: the names are those of HTTP.
    """

    method: str
    path: str
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    cookies: dict[str, str] = field(default_factory=dict)

    def answer(self) -> Any:
        client = Client(raise_request_exception=False)
        client.cookies.load(self.cookies)
        data = "" if self.body is None else json.dumps(self.body)
        return client.generic(self.method, f"/cron/{self.path}", data, "application/json", headers=self.headers)


def requests(rows: Rows, only: Callable[[str, Operation], bool] = lambda _key, _one: True) -> Iterator[Sent]:
    """A hundred requests, to one operation after the other."""
    found = []
    for key, one in OPERATIONS.items():
        if isinstance(one, Operation) and only(key, one):
            method, _space, path = key.partition(" ")
            request = one.api(rows)
            found.append(Sent(method, path.lstrip("/").format(**one.values(rows)) + request.path, request.body))
    for number in range(MANY):
        sent = found[number % len(found)]
        yield Sent(sent.method, sent.path, sent.body)


def bearer(sent: Sent, text: str) -> Sent:
    sent.headers["Authorization"] = text
    return sent


def _in_query(sent: Sent, secret: str, pick: random.Random) -> Sent:
    name = pick.choice(["token", "access_token", "q", "after", "Authorization", "x"])
    value = pick.choice([secret, quote(f"Bearer {secret}"), secret.replace("_", "%5F"), f"a{secret}"])
    sent.path += f"{'&' if '?' in sent.path else '?'}{name}={value}"
    return sent


def _in_path(sent: Sent, secret: str, pick: random.Random) -> Sent:
    path, mark, query = sent.path.partition("?")
    sent.path = pick.choice([f"{secret}/{path}", f"{path}/{secret}", f"{path};{secret}"]) + mark + query
    return sent


def _spaced(secret: str, pick: random.Random) -> str:
    number = pick.randrange(1, len(secret))
    return pick.choice(
        [f"Bearer  {secret}", f"Bearer\t{secret}", f" Bearer {secret}", f"Bearer {secret} x", f"Bearer{secret}",
         f"Bearer {secret[:number]} {secret[number:]}", f"Bearer {secret}\xa0"]
    )  # fmt: skip


def _two_headers(secret: str, pick: random.Random) -> str:
    """A web server joins two headers with a comma."""
    good = f"Bearer {secret}"
    return pick.choice(
        [
            f"{good},{good}",
            f"{good},Basic YTpi",
            f"Basic YTpi, {good}",
            f"{good}, Bearer cron_x",
            f",{good}",
            f"{good},",
        ]
    )


Kind = Callable[[Sent, str, random.Random], Sent]

MISPLACED: dict[str, tuple[Kind, int, str]] = {
    "in the query": (_in_query, 400, "TOKEN_IN_URL"),
    "in the query, beside the header": (
        lambda sent, secret, pick: bearer(_in_query(sent, secret, pick), f"Bearer {secret}"), 400, "TOKEN_IN_URL",
    ),
    "in the path": (_in_path, 400, "TOKEN_IN_URL"),
    "behind a fragment's sign": (
        lambda sent, secret, _pick: Sent(sent.method, f"{sent.path}%23{secret}", sent.body), 400, "TOKEN_IN_URL",
    ),
    "wrong scheme": (
        lambda sent, secret, pick: bearer(
            sent, f"{pick.choice(['Basic', 'Token', 'Digest', 'bear', 'Bearer:', 'Bearer=', 'JWT'])} {secret}"
        ), 401, "UNAUTHENTICATED",
    ),
    "no scheme": (lambda sent, secret, _pick: bearer(sent, secret), 401, "UNAUTHENTICATED"),
    "two headers": (
        lambda sent, secret, pick: bearer(sent, _two_headers(secret, pick)), 401, "UNAUTHENTICATED",
    ),
    "with spaces": (lambda sent, secret, pick: bearer(sent, _spaced(secret, pick)), 401, "UNAUTHENTICATED"),
    "in a cookie": (
        lambda sent, secret, pick: Sent(
            sent.method, sent.path, sent.body,
            cookies={pick.choice(["Authorization", "token", "csrftoken", "x"]): secret},
        ), 401, "UNAUTHENTICATED",
    ),
    "in another header": (
        lambda sent, secret, pick: Sent(
            sent.method, sent.path, sent.body,
            {pick.choice(["X-Token", "X-Api-Key", "Proxy-Authorization", "X-Authorization"]): secret},
        ), 401, "UNAUTHENTICATED",
    ),
    "in the body": (
        lambda sent, secret, pick: Sent(
            "POST", "executions/1/cancel", {pick.choice(["token", "Authorization", "access_token"]): secret}
        ), 401, "UNAUTHENTICATED",
    ),
}  # fmt: skip
"""How a live token is sent, and the status and the code of the answer."""


@pytest.fixture
def owner(db: None) -> User:
    list(make_groups())
    found: User = UserFactory()
    found.groups.add(Group.objects.get(name=EDITOR))
    return found


@pytest.fixture
def rows(owner: User) -> Rows:
    return rows_of("free", None)


@contextmanager
def nothing_shown(caplog: pytest.LogCaptureFixture, answers: list[Any]) -> Iterator[None]:
    """Fail if a record of a log, an answer or a row of the database has a secret, or if a row has changed."""
    before = world()
    caplog.clear()
    with caplog.at_level(logging.DEBUG):
        yield
    formats = (LineFormatter(), JsonFormatter())
    for record in caplog.records:
        for text in (*(one.format(record) for one in formats), repr(vars(record))):
            assert not SECRET.search(text), record.name
    for response in answers:
        assert not SECRET.search(f"{response.headers} {text_of(response)}")
    changes = changed(before, after := world())
    assert set(changes) <= {"scheduling.ApiToken"}, changes  # when a token was used
    assert not SECRET.search(repr(after))


@pytest.mark.parametrize("kind", MISPLACED)
def test_a_live_token_that_is_not_where_it_belongs_is_refused(
    owner: User, rows: Rows, caplog: pytest.LogCaptureFixture, settings: Any, kind: str
) -> None:
    misplaced, status, code = MISPLACED[kind]
    _token, secret = make_token(owner, "live")
    answers: list[Any] = []
    pick = random.Random(kind)
    with nothing_shown(caplog, answers):
        for number, sent in enumerate(requests(rows)):
            if number == MANY // 2:
                settings.DEBUG = True
            answers.append(misplaced(sent, secret, pick).answer())
    assert [(one.status_code, json.loads(text_of(one))["code"]) for one in answers] == [(status, code)] * MANY
    assert Sent("GET", "schedulers", headers={"Authorization": f"Bearer {secret}"}).answer().status_code == 200


@pytest.mark.parametrize("kind", ["expired", "revoked", "replayed", "unknown"])
def test_a_token_that_is_not_live_is_refused(
    owner: User, rows: Rows, caplog: pytest.LogCaptureFixture, settings: Any, kind: str
) -> None:
    settings.CRON_API_PER_MINUTE = 1_000
    token, secret = make_token(owner, "ended")
    if kind == "replayed":  # each request was answered before
        answered = [bearer(sent, f"Bearer {secret}").answer() for sent in requests(rows, _reads)]
        assert [one.status_code for one in answered if text_of(one)] == [200] * MANY
    if kind in ("revoked", "replayed"):
        assert revoke(token, "ann", clock.now())
    elif kind == "expired":
        ApiToken.objects.update(expires_at=clock.now() - timedelta(seconds=1))
    else:
        ApiToken.objects.all().delete()
    answers: list[Any] = []
    with nothing_shown(caplog, answers):
        for number, sent in enumerate(requests(rows)):
            if number == MANY // 2:
                settings.DEBUG = True
            answers.append(bearer(sent, f"Bearer {secret}").answer())
    assert [(one.status_code, one.json()["code"]) for one in answers] == [(401, "UNAUTHENTICATED")] * MANY


def _reads(_key: str, one: Operation) -> bool:
    return not one.is_act


def test_a_token_that_reads_changes_nothing(owner: User, rows: Rows, caplog: pytest.LogCaptureFixture) -> None:
    _token, secret = make_token(owner, "reads", read_only=True)
    answers: list[Any] = []
    with nothing_shown(caplog, answers):
        for sent in requests(rows, lambda _key, one: one.is_act):
            answers.append(bearer(sent, f"Bearer {secret}").answer())
    assert [(one.status_code, one.json()["code"]) for one in answers] == [(403, "FORBIDDEN")] * MANY


def test_a_token_of_a_member_of_another_group_finds_no_row(owner: User, caplog: pytest.LogCaptureFixture) -> None:
    foreign = rows_of("foreign", Group.objects.create(name="others"))
    owner.groups.add(Group.objects.create(name="team"))
    _token, secret = make_token(owner, "of a team")
    answers: list[Any] = []
    with nothing_shown(caplog, answers):
        for sent in requests(foreign, lambda key, one: "{" in key and one.is_of_rows):
            answers.append(bearer(sent, f"Bearer {secret}").answer())
    assert [(one.status_code, one.json()["code"]) for one in answers] == [(404, "NOT_FOUND")] * MANY


def test_no_page_shows_a_secret(owner: User, rows: Rows) -> None:
    token, secret = make_token(owner, "live")
    run = Sent("POST", f"schedulers/{rows.schedule.pk}/run", {}, {"Authorization": f"Bearer {secret}"})
    pk = run.answer().json()["id"]
    client = by_session(UserFactory(superuser=True))
    for page in (
        "apitoken/", f"apitoken/{token.pk}/change/", f"apitoken/{token.pk}/history/", "dashboard/activity/",
        f"schedulerexecution/{pk}/change/", f"scheduler/{rows.schedule.pk}/history/",
    ):  # fmt: skip
        text = text_of(client.get(f"/admin/scheduling/{page}"))
        assert token.name in text or page.endswith("change/"), page
        assert secret[14:] not in text


@pytest.mark.parametrize("place", ["operation", "token"])
@pytest.mark.parametrize("debug", [True, False])
def test_no_report_of_an_error_shows_a_secret(
    owner: User,
    caplog: pytest.LogCaptureFixture,
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
    place: str,
    debug: bool,
) -> None:
    """Django's reports have the local variables of each frame, and the headers of the request."""
    settings.DEBUG = debug
    _token, secret = make_token(owner, "live")

    def fail(*_args: Any, **_options: Any) -> None:
        raise ValueError("a defect")

    monkeypatch.setattr(*{"operation": (schedules, "by_id"), "token": (tokens, "_note_use")}[place], fail)
    reports: list[str] = []

    def report(request: HttpRequest, **_options: Any) -> None:
        for is_email in (True, False):
            found = ExceptionReporter(request, *sys.exc_info(), is_email=is_email)
            reports.extend([found.get_traceback_text(), found.get_traceback_html()])

    got_request_exception.connect(report)
    answers: list[Any] = []
    try:
        with nothing_shown(caplog, answers):
            for accept in ("text/html", "application/json"):
                sent = bearer(Sent("GET", "schedulers/1"), f"Bearer {secret}")
                sent.headers["Accept"] = accept
                answers.append(sent.answer())
    finally:
        got_request_exception.disconnect(report)
    assert [one.status_code for one in answers] == [500, 500]
    assert len(reports) == 8
    for text in reports:
        assert "a defect" in text
        assert secret[14:] not in text


@pytest.mark.processes
@pytest.mark.any_database
@pytest.mark.django_db(transaction=True)
def test_the_log_of_the_web_server_shows_no_secret(commands: Commands, free_port: int) -> None:
    """It gets two real headers, too."""
    _token, secret = make_token(UserFactory(superuser=True), "live")
    process = commands.start("run_web", "--port", str(free_port), LOG_LEVEL="DEBUG", DEBUG="1")

    def status(path: str, *headers: str) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", free_port, timeout=60)
        try:
            connection.putrequest("GET", f"/cron/{path}")
            for header in headers:
                connection.putheader("Authorization", header)
            connection.endheaders()
            return connection.getresponse().status
        except ConnectionError:
            return 0
        finally:
            connection.close()

    good = f"Bearer {secret}"
    wait_for(lambda: status("schedulers", good) == 200, "the web server answers")
    assert status("schedulers", good, good) == 401
    assert status(f"schedulers?token={secret}") == 400
    assert status(f"schedulers/{secret}") == 400
    assert status(f"schedulers#{secret}") in (400, 401)
    assert status("schedulers", f"Basic {secret}") == 401
    commands.stop(process)
    assert not SECRET.search(commands.log(process)), commands.log(process)
