"""A mail server for tests, in a process or a thread of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import Message
from email.policy import default
from typing import Any

from aiosmtpd.controller import Controller


@dataclass
class Mailbox:
    """What the server has accepted, and how it answers.

    Args:
        answers: maps an address to the server's answer to RCPT TO, such as "550 no such user".
        hangs: whether the server never answers to the content of a message, although it has taken the message.
        drops: whether the server closes the connection then.
        breaks: the addresses for which it closes the connection then.
    """

    accepted: list[tuple[str, Message]] = field(default_factory=list)
    answers: dict[str, str] = field(default_factory=dict)
    hangs: bool = False
    drops: bool = False
    breaks: set[str] = field(default_factory=set)
    port: int = 0

    async def handle_RCPT(self, server: Any, session: Any, envelope: Any, address: str, options: Any) -> str:
        """Accept or refuse one recipient."""
        if address in self.answers:
            return self.answers[address]
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        """Keep the message."""
        for address in envelope.rcpt_tos:
            self.accepted.append((address, message_from_bytes(envelope.content, policy=default)))
        if self.hangs:
            await asyncio.sleep(600)
        if self.drops or self.breaks.intersection(envelope.rcpt_tos):
            server.transport.abort()
        return "250 OK"

    def to(self, address: str) -> list[Message]:
        """Return the messages to one address."""
        return [message for recipient, message in self.accepted if recipient == address]


class FreePort(Controller):
    """A server on a port that the system chooses."""

    def _trigger_server(self) -> None:
        self.port = self.server.sockets[0].getsockname()[1]
        super()._trigger_server()


@contextmanager
def mail_server() -> Iterator[Mailbox]:
    """Run a server on a free port of this machine until the end of the `with` block."""
    mailbox = Mailbox()
    controller = FreePort(mailbox, hostname="127.0.0.1", port=0, ready_timeout=30)
    controller.start()
    try:
        mailbox.port = controller.port
        yield mailbox
    finally:
        controller.stop()


def use(settings: Any, mailbox: Mailbox) -> None:
    """Let Django's settings name the mail server."""
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", mailbox.port
    settings.EMAIL_HOST_USER = settings.EMAIL_HOST_PASSWORD = ""
    settings.EMAIL_USE_TLS = settings.EMAIL_USE_SSL = False
    settings.DEFAULT_FROM_EMAIL = "cron@example.com"
