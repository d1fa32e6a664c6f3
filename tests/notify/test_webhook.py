"""A webhook gets a signed message. Each answer, and each missing one, is bounded and has a known end."""

from __future__ import annotations

import gzip
import json
import logging
import socket
import ssl
import subprocess
import threading
import tracemalloc
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from scheduling.notify import guarded_http
from scheduling.notify.chat_address import ChatAddressError
from scheduling.notify.delivery import NotSent, Refused, Unsure
from scheduling.notify.guarded_http import ANSWER_LENGTH, NoAnswer, call
from scheduling.notify.webhook import check_url, send
from tests.notify.chat_server import ChatServer, chat_server
from tests.notify.look_ups import resolve
from tests.notify.own_hmac import hmac_of
from tests.support import wait_for

SECRET, TOKEN = "cronhook_of_the_tests", "hunter2-is-the-token"
BODY = b'{"version": 1, "event": "test"}'


@pytest.fixture
def short(settings: Any) -> None:
    """A message may take two seconds."""
    settings.CRON_LEASE_SECONDS = 3


def post(address: str, secret: str = SECRET, delivery_id: str = "alert-7") -> None:
    send(address, secret, BODY, delivery_id)


def test_a_message_is_signed_over_its_time_and_its_bytes(chat: ChatServer) -> None:
    post(f"http://user:pass@{chat.host}/hook?key={TOKEN}")
    ((path, headers, body),) = chat.arrived
    assert (path, body) == (f"/hook?key={TOKEN}", BODY)
    assert (headers["Content-Type"], headers["CRON-Delivery"]) == ("application/json", "alert-7")
    parts = dict(part.split("=") for part in headers["CRON-Signature"].split(","))
    assert parts["v1"] == hmac_of(SECRET.encode(), parts["t"].encode() + b"." + body)


@pytest.mark.parametrize(
    ("status", "error"),
    [(200, None), (204, None), (299, None), (300, Refused), (304, Refused), (400, Refused), (401, Refused),
     (404, Refused), (408, NotSent), (410, Refused), (425, NotSent), (429, NotSent), (500, NotSent), (501, NotSent),
     (503, NotSent), (520, NotSent), (600, Refused), (999, Refused)],
)  # fmt: skip
def test_the_status_says_whether_a_later_try_can_work(
    chat: ChatServer, status: int, error: type[Exception] | None
) -> None:
    chat.status = status
    if error is None:
        post(f"http://{chat.host}/hook")
    else:
        with pytest.raises(error, match=f"^The webhook answered {status}"):
            post(f"http://{chat.host}/hook")
    assert len(chat.arrived) == 1


@pytest.mark.parametrize(("text", "seconds"), [("7", 7), ("999999", 3_600), ("soon", None), ("", None)])
def test_retry_after_is_heeded_and_bounded(chat: ChatServer, text: str, seconds: float | None) -> None:
    chat.status, chat.headers = 503, {"retry-after": text}
    with pytest.raises(NotSent) as later:
        post(f"http://{chat.host}/hook")
    assert later.value.retry_after == seconds


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("target", ["internal", "itself", "//", "file:///etc/passwd"])
def test_no_redirect_is_followed(chat: ChatServer, status: int, target: str) -> None:
    """The other server is one that the guard would refuse, and the same server would answer 10,000 times like this."""
    with chat_server() as internal:
        found = {"internal": f"http://{internal.host}/", "itself": f"http://{chat.host}/hook"}.get(target, target)
        chat.status, chat.headers = status, {"Location": found}
        with pytest.raises(Refused, match="It points to another address, which is not called") as refused:
            post(f"http://{chat.host}/hook")
        assert internal.arrived == []
    assert len(chat.arrived) == 1
    assert found not in str(refused.value)


@pytest.mark.parametrize(
    "internal", ["127.0.0.1", "10.0.0.5", "169.254.169.254", "192.168.1.1", "100.64.0.1", "::1", "fd00::1"]
)
def test_a_name_that_leads_inside_is_refused(monkeypatch: pytest.MonkeyPatch, internal: str) -> None:
    connections: list[Any] = []
    monkeypatch.setattr(socket.socket, "connect", lambda _socket, address: connections.append(address))
    check_url("https://hooks.example.com/x")  # at the form, no name is looked up
    resolve(monkeypatch, [internal])
    with pytest.raises(Refused, match=r"has the internal address .+ CRON_INTERNAL_HOSTS"):
        post("https://hooks.example.com/x")
    assert connections == []


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("", "must begin with https:// or http://"), ("ftp://example.com", "must begin with https:// or http://"),
        ("jsons://example.com/x", "must begin with"), ("http://", "names no host"), ("http://[::1", "names no host"),
        ("http://a:99999/", "names no host"), ("http://localhost/x", "has the internal address"),
        ("http://127.1/x", "has the internal address"), ("http://[::1]/x", "has the internal address"),
        ("http://a b/", "has a space"), ("http://a/\n", None), ("http://a/\x00", "has a space"),
        ("http://ä.example.com/", "has a space"), ("http://a/" + "x" * 3_000, "more than 2000 characters"),
        ("mailto:a@example.com", "must begin with"), ("${SECRET_KEY}", "must look like"),
    ],
)  # fmt: skip
def test_an_address_that_cannot_be_called_is_refused_early_and_late(address: str, says: str | None) -> None:
    if says is None:
        return check_url(address)  # spaces and line ends around an address are removed
    with pytest.raises(ChatAddressError, match=says) as early:
        check_url(address)
    with pytest.raises(Refused) as late:
        post(address)
    assert TOKEN not in str(early.value) + str(late.value)
    return None


def test_a_body_that_never_ends_or_comes_slowly_changes_no_success(chat: ChatServer, short: None) -> None:
    chat.headers = {"Content-Length": "1000000000"}
    post(f"http://{chat.host}/hook")
    chat.status, chat.body = 400, b"x" * (guarded_http.BODY_LENGTH + 5_000)
    with pytest.raises(Refused, match="The webhook answered 400: xxx") as refused:
        post(f"http://{chat.host}/hook")
    assert len(str(refused.value)) < ANSWER_LENGTH + 100


def test_a_server_that_sends_byte_by_byte_keeps_no_thread(chat: ChatServer, short: None) -> None:
    chat.drip, chat.headers = 0.4, {"X-Padding": "x" * 200}  # the whole head would take more than a minute
    with pytest.raises(Unsure, match="did not answer within 2 s"):
        post(f"http://{chat.host}/hook")
    left = [thread for thread in threading.enumerate() if thread.name == "message"]
    wait_for(lambda: not any(thread.is_alive() for thread in left), "the thread ends with the time limit", 10)


def test_a_server_that_is_silent_may_have_the_message(chat: ChatServer, short: None) -> None:
    chat.silence = 6  # after this time, the server would answer that all is well
    with pytest.raises(Unsure, match="did not answer within 2 s"):
        post(f"http://{chat.host}/hook")
    assert len(chat.arrived) == 1


def test_a_connect_that_hangs_sends_nothing(settings: Any, short: None) -> None:
    with ExitStack() as stack:
        full = stack.enter_context(socket.socket())
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for _number in range(3):  # nothing accepts them, so the queue of the port is full
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(full.getsockname())
        host = f"127.0.0.1:{full.getsockname()[1]}"
        settings.CRON_INTERNAL_HOSTS = host
        with pytest.raises(NotSent, match=r"cannot be reached\."):
            post(f"http://{host}/hook")


@pytest.mark.parametrize("coding", ["gzip", "gzip, gzip"])
def test_a_compressed_answer_takes_little_memory(chat: ChatServer, coding: str) -> None:
    packed = gzip.compress(bytes(100_000_000), 1)
    for _again in coding.split(",")[1:]:
        packed = gzip.compress(packed)
    chat.status, chat.body, chat.headers = 500, packed, {"Content-Encoding": coding}
    tracemalloc.start()
    try:
        with pytest.raises(NotSent, match="The webhook answered 500"):
            post(f"http://{chat.host}/hook")
        _now, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 10_000_000


def test_an_answer_that_cannot_be_unpacked_is_none(chat: ChatServer) -> None:
    chat.status, chat.body, chat.headers = 500, b"no gzip", {"Content-Encoding": "gzip"}
    with pytest.raises(NotSent, match="The webhook answered 500: no text"):
        post(f"http://{chat.host}/hook")
    with pytest.raises(NoAnswer):
        call("GET", f"http://{chat.host}/", {}, b"", 5)


@pytest.mark.parametrize(
    "answer", [b"", b"\x00\xff" * 50, b"HTTP/1.1 200\r\n", b"HTTP/9 OK\r\n\r\n", b"SSH-2.0-OpenSSH_9.2\r\n",
               b"HTTP/1.1 abc OK\r\n\r\n", b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200 + b"\r\n"],
)  # fmt: skip
def test_an_answer_that_is_not_http_is_none(settings: Any, answer: bytes) -> None:
    with RawServer(answer) as host:
        settings.CRON_INTERNAL_HOSTS = host
        try:
            post(f"http://{host}/hook")
        except Unsure as error:
            assert str(error) == "The server of the webhook did not answer within 10 s."  # noqa: PT017
        else:
            assert answer.startswith(b"HTTP/1.1 200\r\n")


class RawServer:
    """A server that answers each connection with the same bytes, and closes it."""

    def __init__(self, answer: bytes, context: ssl.SSLContext | None = None) -> None:
        self.answer, self.context, self.listener = answer, context, socket.create_server(("127.0.0.1", 0))

    def __enter__(self) -> str:
        threading.Thread(target=self.serve, daemon=True).start()
        return f"127.0.0.1:{self.listener.getsockname()[1]}"

    def __exit__(self, *_error: object) -> None:
        self.listener.close()

    def serve(self) -> None:
        """Answer until the listener is closed."""
        while True:
            try:
                connection, _address = self.listener.accept()
            except OSError:
                return
            try:
                with self.context.wrap_socket(connection, server_side=True) if self.context else connection as ready:
                    ready.recv(10_000)
                    ready.sendall(self.answer)
            except OSError:  # the client does not trust the certificate
                connection.close()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> ssl.SSLContext:
    """A certificate of this machine's own that no client trusts."""
    folder = tmp_path_factory.mktemp("tls")
    key, found = folder / "key.pem", folder / "cert.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", "/CN=localhost", "-keyout", key, "-out", found],
        check=True, capture_output=True,
    )  # fmt: skip
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(found, key)
    return context


@pytest.mark.skipif(not Path("/usr/bin/openssl").exists(), reason="needs openssl")
def test_a_certificate_that_nothing_vouches_for_is_not_trusted(certificate: ssl.SSLContext, settings: Any) -> None:
    with RawServer(b"HTTP/1.1 200 OK\r\n\r\n", certificate) as host:
        settings.CRON_INTERNAL_HOSTS = host
        with pytest.raises(NotSent, match=r"cannot be reached\."):
            post(f"https://{host}/hook")


def test_the_address_and_the_secret_can_stand_in_the_environment(
    chat: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Refused, match="The environment variable CRON_WEBHOOK_URL is not set in this process"):
        post("${CRON_WEBHOOK_URL}", "${CRON_WEBHOOK_SECRET}")
    monkeypatch.setenv("CRON_WEBHOOK_URL", f"http://{chat.host}/from-the-environment")
    with pytest.raises(Refused, match="The environment variable CRON_WEBHOOK_SECRET is not set in this process"):
        post("${CRON_WEBHOOK_URL}", "${CRON_WEBHOOK_SECRET}")
    monkeypatch.setenv("CRON_WEBHOOK_SECRET", "too short")
    with pytest.raises(Refused, match="The secret must have 16 to 200 ASCII characters"):
        post("${CRON_WEBHOOK_URL}", "${CRON_WEBHOOK_SECRET}")
    monkeypatch.setenv("CRON_WEBHOOK_SECRET", SECRET)
    post("${CRON_WEBHOOK_URL}", "${CRON_WEBHOOK_SECRET}")
    ((path, headers, _body),) = chat.arrived
    parts = dict(part.split("=") for part in headers["CRON-Signature"].split(","))
    assert (path, parts["v1"]) == ("/from-the-environment", hmac_of(SECRET.encode(), f"{parts['t']}.".encode() + BODY))


def test_without_a_secret_nothing_is_sent(chat: ChatServer) -> None:
    for secret in ("", "short", "x" * 201, "ä" * 20, "${SECRET_KEY}"):
        with pytest.raises(Refused, match=r"secret|must look like"):
            post(f"http://{chat.host}/hook", secret)
    assert chat.arrived == []


@pytest.mark.parametrize("delivery_id", ["", "a b", "a\r\nX-Evil: 1", "ä", "x" * 201])
def test_a_delivery_id_is_one_word(chat: ChatServer, delivery_id: str) -> None:
    with pytest.raises(ValueError, match="A delivery id has"):
        post(f"http://{chat.host}/hook", delivery_id=delivery_id)
    assert chat.arrived == []


def test_no_log_line_and_no_error_has_a_secret(chat: ChatServer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(1)
    logging.getLogger("urllib3").setLevel(1)
    post(f"http://user:{TOKEN}@{chat.host}/{TOKEN}")
    chat.status, chat.echo = 400, True
    with pytest.raises(Refused) as refused:
        post(f"http://user:{TOKEN}@{chat.host}/{TOKEN}?k={TOKEN}")
    signed = chat.arrived[-1][1]["CRON-Signature"].partition("v1=")[2]
    for text in (str(refused.value), caplog.text):
        assert TOKEN not in text
        assert SECRET not in text
        assert signed not in text


def test_json_of_any_kind_is_written_or_refused() -> None:
    from datetime import UTC, datetime

    from scheduling.notify.delivery import Letter
    from scheduling.notify.webhook_body import MOST_BYTES, webhook_body

    now = datetime(2026, 3, 10, 12, tzinfo=UTC)
    letter = Letter("Grüße \ud800", "text\x00")
    body = webhook_body(letter, {"event": "x", "at": now, "id": "forged", "version": 9, "set": {1}}, "d-1", now)
    found = json.loads(body)
    assert (found["version"], found["id"], found["sent_at"]) == (1, "d-1", "2026-03-10T12:00:00+00:00")
    assert (found["event"], found["at"], found["set"]) == ("x", "2026-03-10T12:00:00+00:00", "{1}")
    assert (found["subject"], found["text"]) == ("Grüße \ud800", "text\x00")
    circle: dict[str, Any] = {}
    circle["x"] = circle
    deep: Any = []
    for _level in range(200_000):
        deep = [deep]
    for facts in ({"x": float("nan")}, circle, {"x": deep}, {("a",): 1}, {"x": "y" * MOST_BYTES}):
        with pytest.raises(Refused):
            webhook_body(letter, facts, "d-1", now)
