"""Hostile requests: bodies, headers, ids and tokens that no client should send. Each gets an answer of the 4xx, and
nothing is changed.
"""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone as clock

from scheduling.http.bodies import LARGEST_BODY
from scheduling.models import ApiToken, SchedulerExecution
from tests.admin.rows import one_of_each
from tests.admin.world import changed, world
from tests.factories import ManualExecutionFactory, SchedulerFactory, UserFactory
from tests.hostile import fuzz
from tests.hostile.atoms import NUMBERS, TEXTS, random_text
from tests.http.client import ApiClient

pytestmark = pytest.mark.django_db

TYPE = "application/json"


@pytest.fixture
def root() -> ApiClient:
    return ApiClient(UserFactory(superuser=True))


def problem(response: Any, *statuses: int) -> dict[str, Any]:
    """Return the problem document of an answer, which has one of the statuses."""
    assert response.status_code in statuses, (response.status_code, response.content[:300])
    assert response.headers["Content-Type"] == "application/problem+json"
    found: dict[str, Any] = json.loads(response.content)
    assert found["status"] == response.status_code
    assert found["code"]
    assert found["detail"]
    return found


BODIES = {
    "10 MB": (b'{"params": {"x": "' + b"y" * 10_000_000 + b'"}}', TYPE, 413, "TOO_LARGE"),
    "deep": (b'{"params": ' + b"[" * 10_000 + b"]" * 10_000 + b"}", TYPE, 400, "BAD_JSON"),
    "deeper than stored": (b'{"params": {"x": ' + b"[" * 40 + b"]" * 40 + b"}}", TYPE, 400, "BAD_JSON"),
    "twice": (b'{"params": {"since_days": 1}, "params": {"since_days": 2}}', TYPE, 400, "BAD_JSON"),
    "twice inside": (b'{"params": {"since_days": 1, "since_days": 2}}', TYPE, 400, "BAD_JSON"),
    "NaN": (b'{"params": {"x": NaN}}', TYPE, 400, "BAD_JSON"),
    "infinity": (b'{"params": {"x": -Infinity}}', TYPE, 400, "BAD_JSON"),
    "too large a float": (b'{"params": {"x": 1e999}}', TYPE, 400, "BAD_JSON"),
    "65 bits": (b'{"params": {"x": 18446744073709551616}}', TYPE, 400, "BAD_JSON"),
    "5,000 digits": (b'{"params": {"x": ' + b"9" * 5000 + b"}}", TYPE, 400, "BAD_JSON"),
    "half a character": (b'{"params": {"x": "\\ud800"}}', TYPE, 400, "BAD_JSON"),
    "half a character in a name": (b'{"params": {"\\udfff": 1}}', TYPE, 400, "BAD_JSON"),
    "NUL": (b'{"params": {"x": "a\\u0000b"}}', TYPE, 400, "BAD_JSON"),
    "raw NUL": (b'{"params": {"x": "a\x00b"}}', TYPE, 400, "BAD_JSON"),
    "Latin-1": ('{"params": {"x": "é"}}'.encode("latin-1"), "application/json; charset=latin-1", 400, "BAD_JSON"),
    "no JSON": (b"params=1", TYPE, 400, "BAD_JSON"),
    "short": (b'{"params": {"since_days"', TYPE, 400, "BAD_JSON"),
    "a list": (b"[]", TYPE, 400, "BAD_JSON"),
    "null": (b"null", TYPE, 400, "BAD_JSON"),
    "an unknown name": (b'{"parms": {}}', TYPE, 422, "INVALID"),
    "a form": (b"params=1", "application/x-www-form-urlencoded", 415, "NOT_JSON"),
    "a file": (b"--b\r\n\r\n--b--", "multipart/form-data; boundary=b", 415, "NOT_JSON"),
    "a broken file": (b"--b\r\n", "multipart/form-data", 415, "NOT_JSON"),
    "XML": (b"<!DOCTYPE x SYSTEM 'file:///etc/passwd'><x/>", "application/xml", 415, "NOT_JSON"),
    "a text": (b"{}", "text/plain", 415, "NOT_JSON"),
    "no type": (b"{}", "", 415, "NOT_JSON"),
    "a type that is none": (b"{}", "\x00;;=\xff", 415, "NOT_JSON"),
}


def test_hostile_bodies_are_refused_and_change_nothing(root: ApiClient) -> None:
    row = SchedulerFactory(rare=True, handler="tests.typed", params={"since_days": 1})
    client = Client(headers={"Authorization": f"Bearer {root.secret}"})
    before = world()
    for name, (body, content_type, status, code) in BODIES.items():
        response = client.generic("POST", f"/cron/schedulers/{row.pk}/run", body, content_type)
        assert (name, problem(response, status)["code"]) == (name, code)
    assert set(changed(before, world())) <= {"scheduling.ApiToken"}


@pytest.mark.parametrize(
    ("length", "statuses"),
    [("abc", (400,)), ("-5", (400,)), ("50", (400,)), ("9" * 40, (413,)), ("٣" * 9, (400,)), ("2", (202,))],
)
def test_a_wrong_length_of_a_body(root: ApiClient, length: str, statuses: tuple[int, ...]) -> None:
    row = SchedulerFactory(rare=True)
    environ = {"CONTENT_LENGTH": length, "wsgi.input": io.BytesIO(b"{}"), "CONTENT_TYPE": TYPE}
    client = Client(headers={"Authorization": f"Bearer {root.secret}"})
    response = client.post(f"/cron/schedulers/{row.pk}/run", **environ)
    assert response.status_code in statuses, response.content
    assert SchedulerExecution.objects.count() == (response.status_code == 202)


def test_a_body_without_a_length_is_not_taken_for_an_empty_one(root: ApiClient) -> None:
    row = SchedulerFactory(rare=True, handler="tests.typed", params={"since_days": 1})
    body = io.BytesIO(b'{"params": {"since_days": 7}}')
    environ = {"CONTENT_LENGTH": "", "wsgi.input": body, "CONTENT_TYPE": TYPE, "HTTP_TRANSFER_ENCODING": "chunked"}
    client = Client(headers={"Authorization": f"Bearer {root.secret}"})
    assert problem(client.post(f"/cron/schedulers/{row.pk}/run", **environ), 411)["code"] == "LENGTH_REQUIRED"
    assert not SchedulerExecution.objects.exists()


class GoneAway(io.BytesIO):
    """A body whose client has gone away."""

    def read(self, *_args: Any) -> bytes:
        raise OSError("Connection reset by peer")


def test_a_client_that_goes_away(root: ApiClient) -> None:
    row = SchedulerFactory(rare=True)
    client = Client(headers={"Authorization": f"Bearer {root.secret}"})
    environ = {"CONTENT_LENGTH": "20", "wsgi.input": GoneAway(), "CONTENT_TYPE": TYPE}
    problem(client.post(f"/cron/schedulers/{row.pk}/run", **environ), 400)
    assert not SchedulerExecution.objects.exists()


HEADERS = (
    "If-Match", "Idempotency-Key", "Accept-Language", "Authorization", "X-HTTP-Method-Override", "Accept",
    "X-Request-Id", "Cookie", "X-CSRFToken", "Range", "If-None-Match", "Content-Encoding",
)  # fmt: skip
GARBAGE = (
    '"', '""', 'W/"', '"a", "b"', "*, *", "\xff\xfe", "a\tb", "x" * 300, "y" * 1_000_000, "q=;q=,;", "en;q=x",
    "../../etc/passwd", "zz-" + "a" * 500, "sessionid=" + "s" * 9_000, "bytes=5-1", "Bearer", "Bearer ",
    "Basic eDp5", "Bearer cron_x_y", "Bearer \x00", "DELETE", "gzip", "%s%n{0}", "\u202e".encode().decode("latin-1"),
)  # fmt: skip


def test_hostile_headers_change_nothing_that_they_should_not(root: ApiClient) -> None:
    row, amount, pick = SchedulerFactory(rare=True), fuzz.amount(fuzz.API // 10, 30), fuzz.generator("headers")
    fixed = [(name, value) for name in ("If-Match", "Idempotency-Key", "Accept-Language") for value in GARBAGE[:8]]
    for number in range(max(amount, len(fixed))):
        name, value = fixed[number] if number < len(fixed) else (pick.choice(HEADERS), _garbage(pick))
        headers = {"Authorization": f"Bearer {root.secret}", name: value}
        client = Client()
        read = client.get(f"/cron/schedulers/{row.pk}", headers=headers)
        assert read.status_code in (200, 401), (name, value[:80], read.content[:300])
        paused = client.generic("POST", f"/cron/schedulers/{row.pk}/pause", "{}", TYPE, headers=headers)
        assert paused.status_code in (200, 400, 401, 403, 409, 422), (name, value[:80], paused.content[:300])
        kept = client.generic("PATCH", f"/cron/schedulers/{row.pk}", "{}", TYPE, headers=headers)
        assert kept.status_code in (200, 400, 401, 412, 422), (name, value[:80], kept.content[:300])
        if name == "If-Match" and value != "*":
            problem(client.delete(f"/cron/schedulers/{row.pk}", headers=headers), 400, 412, 422)
    row.refresh_from_db()


def _garbage(pick: Any) -> str:
    text: str = pick.choice((pick.choice(GARBAGE), random_text(pick), pick.choice(TEXTS)))
    return text.encode("utf-8", "replace").decode("latin-1").replace("\r", "").replace("\n", "")


def test_a_header_does_not_change_the_method(root: ApiClient) -> None:
    row = SchedulerFactory(rare=True)
    for name in ("X_HTTP_Method_Override", "X_HTTP_Method", "X_Method_Override"):
        assert root.get(f"schedulers/{row.pk}", **{name: "DELETE"}).status_code == 200
        assert root.get(f"schedulers/{row.pk}?_method=DELETE").status_code == 422
        assert root.send("PATCH", f"schedulers/{row.pk}", {}, **{name: "DELETE"}).status_code == 200
    row.refresh_from_db()


def test_ids_that_no_row_has(root: ApiClient) -> None:
    SchedulerFactory(rare=True)
    for number in (*NUMBERS, "0x1", "1_000", "\u0661", "+1", "%00", "1e3", " 1", "\uff11"):
        for path in ("schedulers/{}", "executions/{}", "executions/{}/output", "executions/1/artefacts/{}",
                     "schedulers/{}/next", "executions?scheduler={}", "failed?scheduler={}", "schedulers?after={}",
                     "executions?after={}", "executions?q={}", "executions?q=id:{}", "executions?q=schedule:{}",
                     "schedulers/1/next?count={}", "processes?limit={}"):  # fmt: skip
            response = root.get(path.format(number))
            assert response.status_code in (200, 404, 422), (path, number, response.content[:300])
    for number in (2**63, -(2**63) - 1, 2**64, 10**40):
        problem(root.post("failed/discard", {"ids": [number]}), 400, 422)
        problem(root.post("reports/generate", {"report_id": number}), 400, 422)
        problem(root.post("schedulers", {"worker_id": number, "schedule": "@daily"}), 400, 422)


def test_a_page_after_a_row_that_is_gone(root: ApiClient) -> None:
    first, gone, last = (SchedulerFactory(rare=True) for _ in range(3))
    runs = [ManualExecutionFactory(scheduler=first) for _ in range(3)]
    following = root.get("schedulers?limit=2").json()["next"]
    assert following == gone.pk
    gone.delete()
    SchedulerExecution.objects.filter(pk=runs[1].pk).delete()
    assert [item["id"] for item in root.get(f"schedulers?after={following}").json()["items"]] == [last.pk]
    assert [item["id"] for item in root.get(f"executions?after={runs[1].pk}").json()["items"]] == [runs[0].pk]


def test_filters_that_ask_for_everything(root: ApiClient, settings: Any, tmp_path: Path) -> None:
    settings.MEDIA_ROOT = tmp_path
    one_of_each()
    wide = ("%", "_", "%" * 200, "a " * 100, "error:% " * 25, "param:x=% " * 20, "key:", '"', "\\", "*", "(" * 200)
    for path in ("schedulers", "executions", "failed"):
        for text in wide:
            name = "target_name" if path == "failed" else "q"
            response = Client().get(f"/cron/{path}", {name: text}, headers={"Authorization": f"Bearer {root.secret}"})
            assert response.status_code in (200, 422), (path, text, response.content[:300])
        problem(root.get(f"{path}?limit=201"), 422)
        problem(root.get(f"{path}?limit=999999999999999999999"), 422)
    assert root.post("failed/discard", {"all": True}).status_code != 200  # without the count of a dry run


def test_the_token_of_a_user_who_is_gone() -> None:
    for change in ("delete", "is_active", "is_staff"):
        user: User = UserFactory(superuser=True)
        client = ApiClient(user)
        assert client.get("schedulers").status_code == 200
        if change == "delete":
            user.delete()
        else:
            User.objects.filter(pk=user.pk).update(**{change: False})
        response = client.get("schedulers")
        assert problem(response, 401)["code"] == "UNAUTHENTICATED"
        assert response.headers["WWW-Authenticate"] == "Bearer"


def test_a_token_that_ended_a_moment_ago(root: ApiClient) -> None:
    ApiToken.objects.update(expires_at=clock.now())
    problem(root.get("schedulers"), 401)


def test_the_largest_body_is_read_and_one_byte_more_is_not(root: ApiClient) -> None:
    start = len('{"params": {"x": ""}}')
    for more, statuses in ((0, (202, 400, 422)), (1, (413,))):
        body = '{"params": {"x": "' + "y" * (LARGEST_BODY - start + more) + '"}}'
        assert len(body) == LARGEST_BODY + more
        assert root.send("POST", "targets/worker/tests.noop/run", body).status_code in statuses


def test_numbers_and_instants_are_read_as_the_document_says(root: ApiClient) -> None:
    values = {"schedule": "@daily", "worker": "tests.noop"}
    made = root.post("schedulers", values | {"time_limit": 60.0, "worker_id": None})
    assert (made.status_code, made.json()["time_limit"]) == (201, 60)
    for number in (60.5, "60", True, 3e9):
        assert problem(root.post("schedulers", values | {"time_limit": number}), 422)["errors"]
    for wrong in ("0", "1700000000", "1e9", "today"):
        problem(root.get(f"executions?since={wrong}"), 422)
        problem(root.get(f"failed?failed_before={wrong}"), 422)
    problem(root.post("failed/discard", {"all": True, "dry_run": True, "failed_before": 1_700_000_000}), 422)
    row = ManualExecutionFactory()
    ends = "since=0001-01-01T00:00:00%2B14:00&until=9999-12-31T23:59:59-14:00"
    assert [item["id"] for item in root.get(f"executions?{ends}").json()["items"]] == [row.pk]


def test_the_key_of_a_dry_run_is_checked(root: ApiClient) -> None:
    for path in ("failed/republish", "failed/discard"):
        refused = root.post(path, {"all": True, "dry_run": True}, Idempotency_Key="\xe9")
        assert problem(refused, 400)["code"] == "IDEMPOTENCY_KEY_INVALID"


def test_a_wrong_method_names_the_possible_ones_in_order(root: ApiClient) -> None:
    response = root.send("PUT", "schedulers/1")
    assert (problem(response, 405)["code"], response.headers["Allow"]) == ("METHOD_NOT_ALLOWED", "DELETE, GET, PATCH")
