"""A mail server that sends one byte now and then keeps neither a message nor its thread for ever."""

from __future__ import annotations

import contextlib
import socket
import ssl
from collections.abc import Iterator
from threading import Thread
from typing import Any

import pytest
from django.core.mail.backends import locmem, smtp

from scheduling.models import Channel
from scheduling.notify import channels, email, mail_socket
from scheduling.notify.connection_deadline import ConnectionDeadline
from scheduling.notify.delivery import Letter, Undelivered, Unreachable, Unsure
from scheduling.notify.email import Mailer
from tests.notify.mail_server import use
from tests.notify.slow_mail_server import SlowMailServer, slow_mail_server

LETTER = Letter("subject", "text")


@pytest.fixture
def server(settings: Any) -> Iterator[SlowMailServer]:
    """Provide a server that Django's settings name."""
    with slow_mail_server() as found:
        use(settings, found)  # type: ignore[arg-type]  # it has a port, too
        yield found


def assert_ends(action: Any) -> None:
    """Fail if the function does not come to its end. The test itself does not hang."""
    thread = Thread(target=action, daemon=True)
    thread.start()
    thread.join(20)
    assert not thread.is_alive(), "it still waits"


@pytest.mark.parametrize(
    ("slow", "kind"), [("CONNECT", Unreachable), ("EHLO", Unsure), ("RCPT", Unsure), ("DOT", Unsure)]
)
def test_a_message_has_a_time_limit_as_a_whole(server: SlowMailServer, slow: str, kind: type[Undelivered]) -> None:
    server.slow = slow
    errors: list[Undelivered] = []

    def send() -> None:
        with Mailer() as mailer:
            try:
                mailer.send("anna@example.com", LETTER, "<1@example.com>", 0.5)
            except Undelivered as error:
                errors.append(error)

    assert_ends(send)
    assert [(type(error), str(error)) for error in errors] == [(kind, "The server did not answer within 0.5 s.")]
    assert server.ended.wait(10), "the connection is closed"


def test_the_limit_holds_for_a_later_message_on_the_same_connection(server: SlowMailServer) -> None:
    def send() -> None:
        with Mailer() as mailer:
            mailer.send("anna@example.com", LETTER, "<1@example.com>")
            server.slow = "RCPT"
            with pytest.raises(Unsure):
                mailer.send("ben@example.com", LETTER, "<2@example.com>", 0.5)

    assert_ends(send)
    assert server.commands.count("EHLO") == 1


def test_the_goodbye_has_a_time_limit(server: SlowMailServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(email, "CLOSE_SECONDS", 0.5)
    server.slow = "QUIT"

    def send() -> None:
        with Mailer() as mailer:
            mailer.send("anna@example.com", LETTER, "<1@example.com>")

    assert_ends(send)
    assert "DOT" in server.commands


def test_a_test_message_ends_soon(server: SlowMailServer) -> None:
    server.slow = "CONNECT"
    team = Channel(name="team", kind="email", recipients="anna@example.com\nben@example.com")

    def send() -> None:
        with contextlib.suppress(Undelivered):
            channels.send(team, LETTER, {}, "test-1", most_seconds=0.5)

    assert_ends(send)


def test_a_backend_of_the_project_is_watched_if_it_is_made_from_that_of_django(server: SlowMailServer) -> None:
    class Own(smtp.EmailBackend):
        """Such as one that signs each message."""

    seen: list[Any] = []
    connection = Own(timeout=5)
    for _message in range(2):
        mail_socket.watch(connection, seen.append)
    connection.open()
    assert isinstance(connection, Own)
    assert [found.fileno() for found in seen] == [connection.connection.sock.fileno()]
    connection.close()


def test_a_backend_without_a_socket_stays_as_it_is() -> None:
    connection = locmem.EmailBackend()
    mail_socket.watch(connection, lambda found: pytest.fail("it has no socket"))
    assert type(connection) is locmem.EmailBackend


def test_a_connection_with_tls_is_ended_too() -> None:
    ours, theirs = socket.socketpair()
    plain = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    plain.check_hostname = False
    with theirs, plain.wrap_socket(ours, do_handshake_on_connect=False) as secured, ConnectionDeadline(60) as deadline:
        deadline.watch(secured)
        deadline._end()
        theirs.settimeout(10)
        assert theirs.recv(1) == b"", "the other side sees the end"
