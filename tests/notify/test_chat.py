"""A message to a chat arrives, or its end is known. The guard, the time limit and the mask hold in each case."""

from __future__ import annotations

import logging
import socket
from typing import Any

import pytest

from scheduling.notify import chat as sender
from scheduling.notify.chat import send
from scheduling.notify.delivery import Letter, NotSent, Refused, Unsure
from scheduling.notify.guarded_http import ANSWER_LENGTH
from scheduling.notify.secret_text import MASK, without_secrets
from tests.notify.chat_addresses import ADDRESSES
from tests.notify.chat_server import ChatServer
from tests.notify.look_ups import resolve

LETTER = Letter("Standup", "at ten and later", html="<b>at ten</b>")
SECRET = "hunter2-is-the-token"


@pytest.fixture
def short(settings: Any) -> None:
    """A message may take two seconds."""
    settings.CRON_LEASE_SECONDS = 3


def test_the_subject_and_the_text_arrive(chat: ChatServer) -> None:
    send(f"json://user:pass@{chat.host}/hook?+X-Token={SECRET}&:room=general&-key=1", LETTER)
    ((path, headers, body),) = chat.arrived
    assert path == "/hook?key=1"
    assert (headers["X-Token"], headers["User-Agent"]) == (SECRET, "cronsite")
    assert b'"title": "Standup", "message": "at ten and later"' in body
    assert b"general" in body
    assert b"<b>" not in body


def test_a_message_without_a_text_is_its_subject(chat: ChatServer) -> None:
    send(f"mmost://{chat.host}/3ccdd113474722377935511fc85d3dd4", Letter("Standup", "  \n"))
    assert b'"text": "Standup"' in chat.arrived[0][2]


def test_a_text_that_is_too_long_is_one_message(chat: ChatServer) -> None:
    send(f"rocket://{'a' * 32}%2F{'b' * 64}@{chat.host}/#general?mode=webhook", Letter("Standup", "word " * 5_000))
    assert len(chat.arrived) == 1
    assert 500 < len(chat.arrived[0][2]) < 2_000


@pytest.mark.parametrize(
    ("status", "error"),
    [(400, Refused), (401, Refused), (404, Refused), (302, Refused), (429, NotSent), (500, NotSent), (503, NotSent)],
)
def test_the_status_says_whether_a_later_try_can_work(chat: ChatServer, status: int, error: type[Exception]) -> None:
    chat.status, chat.body = status, b"channel_is_archived"
    chat.headers = {"Location": f"http://{chat.host}/elsewhere"}
    with pytest.raises(error, match=f"^The chat server answered {status}: channel_is_archived$"):
        send(f"json://{chat.host}/hook", LETTER)
    assert len(chat.arrived) == 1  # no redirect is followed, and no second try is made


@pytest.mark.parametrize(
    "address",
    [
        f"json://user:{SECRET}@HOST/hook",
        f"json://HOST/hook/{SECRET}",
        f"json://HOST/hook?+Authorization=Bearer%20{SECRET}",
        f"json://HOST/hook?-key={SECRET}",
        f"gotify://HOST/A{SECRET}",
        f"ntfy://{SECRET}:pass@HOST/topic",
        f"nctalk://user:{SECRET}@HOST/room",
    ],
)
def test_an_answer_with_the_secret_is_masked_and_bounded(chat: ChatServer, address: str) -> None:
    chat.status, chat.echo = 500, True
    chat.body = b"unused"
    with pytest.raises(NotSent, match=r"The chat server answered 500: .+") as failed:
        send(address.replace("HOST", chat.host), LETTER)
    said = str(failed.value)
    assert len(chat.arrived) == 1
    assert SECRET not in said
    assert "hunter2" not in said
    assert MASK in said
    assert len(said) < ANSWER_LENGTH + 100
    assert failed.value.__cause__ is None


def test_of_a_long_answer_the_beginning_is_kept(chat: ChatServer) -> None:
    chat.status, chat.body = 500, b"<p>" + b"long  \n" * 20_000
    with pytest.raises(NotSent, match="The chat server answered 500: <p>long long") as failed:
        send(f"json://{chat.host}/hook", LETTER)
    assert len(str(failed.value)) < 350


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("you sent hunter2-token", "slack://hunter2-token/x"),
        ("you sent HUNTER2-TOKEN", "slack://hunter2-token/x"),
        ("you sent hunter2%2Ftoken", "json://host/hunter2/token"),
        ("you sent hunter2/token", "json://u:hunter2%2Ftoken@host/"),
        ("you sent dXNlcjpodW50ZXIy", "json://user:hunter2@host/"),
        ("you sent \\/hunter2\\/", "json://host/hunter2/"),
        ('{"token":"hunter2"}', "json://host/?+X-Token=hunter2"),
    ],
)
def test_the_mask_finds_a_secret_with_other_quoting(text: str, secret: str) -> None:
    said = without_secrets(text, [secret])
    assert "hunter2" not in said.lower()
    assert "dXNlcjpodW50ZXIy" not in said
    assert MASK in said


def test_a_server_that_does_not_answer_is_left(chat: ChatServer, short: None) -> None:
    chat.silence = 6  # after this time, the server would answer that all is well
    with pytest.raises(Unsure, match="The chat server did not answer within 2 s"):
        send(f"json://{chat.host}/hook", LETTER)
    assert len(chat.arrived) == 1


def test_a_server_that_answers_byte_by_byte_is_left(chat: ChatServer, short: None) -> None:
    chat.drip = 0.1  # no read waits long, but the whole answer would take more than 6 seconds
    with pytest.raises(Unsure, match="The chat server did not answer within 2 s"):
        send(f"json://{chat.host}/hook", LETTER)


def test_a_look_up_that_hangs_is_left(short: None, monkeypatch: pytest.MonkeyPatch) -> None:
    import threading

    end = threading.Event()

    def hang(*_arguments: Any, **_options: Any) -> Any:
        end.wait(60)
        raise socket.gaierror

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    try:
        with pytest.raises(Unsure, match="The chat server did not answer within 2 s"):
            send("json://chat.example.com/hook", LETTER)
    finally:
        end.set()


def test_a_server_that_is_not_there_did_not_get_it(settings: Any) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        host = f"127.0.0.1:{taken.getsockname()[1]}"
        settings.CRON_INTERNAL_HOSTS = host
        with pytest.raises(NotSent, match="The chat server cannot be reached"):
            send(f"json://{host}/hook", LETTER)


def test_a_certificate_that_is_not_valid_is_refused(chat: ChatServer) -> None:
    with pytest.raises(NotSent, match="The chat server cannot be reached"):
        send(f"jsons://{chat.host}/hook", LETTER)
    assert chat.arrived == []


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The addresses to which a connection is asked for. No connection is made."""
    found: list[Any] = []

    def connect(_socket: socket.socket, address: Any) -> None:
        found.append(address)
        raise ConnectionRefusedError

    monkeypatch.setattr(socket.socket, "connect", connect)
    return found


@pytest.mark.parametrize("internal", ["127.0.0.1", "10.1.2.3", "169.254.169.254", "100.64.0.1", "::1", "fd00::1"])
@pytest.mark.parametrize("scheme", ["json", "mmosts", "gotify", "ntfys", "rockets", "nctalk", "forms"])
def test_a_name_that_leads_inside_is_refused(
    scheme: str, internal: str, monkeypatch: pytest.MonkeyPatch, connections: list[Any]
) -> None:
    sender.check_address(ADDRESSES[scheme])  # at the form, no name is looked up
    resolve(monkeypatch, [internal])
    with pytest.raises(Refused, match=r"has the internal address .+ CRON_INTERNAL_HOSTS"):
        send(ADDRESSES[scheme], LETTER)
    assert connections == []


def test_a_name_that_changes_its_address_is_looked_up_once(
    monkeypatch: pytest.MonkeyPatch, connections: list[Any]
) -> None:
    """The connection goes to the address that was checked, not to the one that the name has by then."""
    resolve(monkeypatch, ["93.184.215.14", "127.0.0.1", "127.0.0.1"])
    with pytest.raises(NotSent):
        send(ADDRESSES["json"], LETTER)
    assert {address[0] for address in connections} == {"93.184.215.14"}


def test_no_log_line_has_the_secret(chat: ChatServer, caplog: pytest.LogCaptureFixture) -> None:
    """apprise logs the payload at DEBUG, and urllib3 logs the path of each request, which often has the token."""
    caplog.set_level(1)
    for name in ("apprise", "urllib3"):
        logging.getLogger(name).setLevel(1)
    send(f"json://user:{SECRET}@{chat.host}/{SECRET}?+X-Token={SECRET}", LETTER)
    chat.status = 500
    for address in (f"json://user:{SECRET}@{chat.host}/{SECRET}", f"slack://{SECRET}/x", f"gotify://{SECRET}"):
        with pytest.raises((NotSent, Refused)):
            send(address, LETTER)
    with pytest.raises(Refused):
        send(f"json://127.0.0.1:1/{SECRET}", LETTER)
    assert SECRET not in caplog.text
    logging.getLogger("apprise").warning("a line of the project itself")
    assert "a line of the project itself" in caplog.text


@pytest.mark.parametrize("variable", ["CRON_CHAT_TEAM"])
def test_an_address_can_stand_in_the_environment(
    chat: ChatServer, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    with pytest.raises(Refused, match="The environment variable CRON_CHAT_TEAM is not set in this process"):
        send("${CRON_CHAT_TEAM}", LETTER)
    monkeypatch.setenv(variable, f"json://{chat.host}/from-the-environment")
    send("${CRON_CHAT_TEAM}", LETTER)
    assert chat.at("/from-the-environment")


def test_an_address_that_is_no_longer_allowed_is_refused(chat: ChatServer, settings: Any) -> None:
    settings.CRON_CHAT_SCHEMES = "slack"
    with pytest.raises(Refused, match="must begin with one of: slack://"):
        send(f"json://{chat.host}/hook", LETTER)
    assert chat.arrived == []


def test_without_the_extra_the_recipient_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sender, "IS_INSTALLED", False)
    with pytest.raises(Refused, match=r"pip install 'cronsite\[notify\]'"):
        send(ADDRESSES["slack"], LETTER)


def test_a_plugin_that_breaks_is_a_refusal(chat: ChatServer, monkeypatch: pytest.MonkeyPatch) -> None:
    from scheduling.notify import chat_http

    def broken(*_arguments: Any, **_options: Any) -> Any:
        raise KeyError(SECRET)

    monkeypatch.setattr(chat_http, "send_request", broken)
    with pytest.raises(Refused) as failed:
        send(f"json://{chat.host}/{SECRET}", LETTER)
    assert SECRET not in str(failed.value)
