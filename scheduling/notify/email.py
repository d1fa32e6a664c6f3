"""Sends one e-mail to one address."""

from __future__ import annotations

import re
import smtplib
from contextlib import suppress
from email.utils import formatdate
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core import mail
from django.core.mail import EmailMultiAlternatives
from django.core.mail.utils import DNS_NAME

from scheduling.conf import get_conf
from scheduling.core import delivery_sentences as say
from scheduling.core.text import visible_text
from scheduling.notify import mail_socket
from scheduling.notify.addresses import is_address
from scheduling.notify.connection_deadline import ConnectionDeadline
from scheduling.notify.delivery import Letter, NotSent, Refused, Undelivered, Unreachable, Unsure

MOST_SECONDS = 20.0
"""The longest time for one answer of the mail server, in seconds."""

MESSAGE_SECONDS = 60.0
"""The longest time for one e-mail, from the connection to the last answer, in seconds."""

CLOSE_SECONDS = 5.0
"""The longest time for the goodbye at the end of a connection, in seconds."""

MOST_UNSURE = 2
"""After so many e-mails without an answer, the mail server is left alone until the next try."""


def time_limit() -> float:
    """The time limit for one answer of the mail server, in seconds. It is shorter than the lease of a run."""
    own = getattr(settings, "EMAIL_TIMEOUT", None)
    return min(own or MOST_SECONDS, get_conf().lease_seconds * 2 / 3, MOST_SECONDS)


def message_id(name: str) -> str:
    """The Message-ID of a message with this name. The same name gives the same id in each attempt."""
    return f"<{re.sub(r'[^A-Za-z0-9.-]', '-', name)}@{_domain()}>"


def _domain() -> str:
    return urlsplit(get_conf().site_url).hostname or DNS_NAME.get_fqdn()


class Mailer:
    """A connection to the mail server, as a context manager. It is opened at the first message, and again after errors.

    The time limit for an answer begins anew with each byte. So each message has a time limit as a whole, too. It ends
    the connections of Django's own SMTP backend and of those that are made from it. Another backend must have a time
    limit of its own.

    `sender` is the address in From: the setting DEFAULT_FROM_EMAIL.
    """

    def __init__(self) -> None:
        self._connection: Any = None
        self._unsure = 0
        self._unreachable = False

    @property
    def is_usable(self) -> bool:
        """Whether another message can be tried now. If not, the server cannot be reached or does not answer."""
        return not (self._unreachable or self._unsure >= MOST_UNSURE)

    def __enter__(self) -> Mailer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def send(self, to: str, letter: Letter, message_id: str, most_seconds: float = MESSAGE_SECONDS) -> None:
        """Send the letter to one address.

        Args:
            most_seconds: the time limit for this message, with the connection, in seconds.

        Raises:
            Refused: the address is not valid, or the server refuses it for good.
            NotSent: the server refuses the message for now. Unreachable: the server cannot be reached.
            Unsure: the connection broke or the server did not answer while it had the message.
        """
        message = self._message(to, letter, message_id)
        with ConnectionDeadline(most_seconds) as deadline:
            try:
                self._open(deadline)
                self._send(message)
            except Undelivered as error:
                # smtplib takes the part of a line that has come until then for an answer, so it may seem a refusal.
                kind = Unsure if deadline.is_over and not isinstance(error, Unreachable) else type(error)
                self._unsure += kind is Unsure
                if deadline.is_over:
                    raise kind(say.LATE.format(seconds=f"{most_seconds:g}")) from error
                raise

    def _send(self, message: EmailMultiAlternatives) -> None:
        try:
            count = self._connection.send_messages([message])
        except smtplib.SMTPRecipientsRefused as error:
            code, said = next(iter(error.recipients.values()), (550, b""))
            self._close()
            raise _refusal(code, said) from error
        except (smtplib.SMTPSenderRefused, smtplib.SMTPDataError) as error:
            self._close()
            raise _refusal(error.smtp_code, error.smtp_error) from error
        except Exception as error:
            self._close()
            raise Unsure(_words(error)) from error
        if not count:
            raise Refused(say.NO_BACKEND.format())

    def _message(self, to: str, letter: Letter, message_id: str) -> EmailMultiAlternatives:
        if not is_address(to):
            raise Refused(say.NO_ADDRESS.format(address=visible_text(to, 80)))
        # RFC 3834: programs that answer messages, such as an absence notice, leave these alone.
        headers = {"Message-ID": message_id, "Date": formatdate(localtime=False), "Auto-Submitted": "auto-generated"}
        message = EmailMultiAlternatives(letter.subject, letter.text, to=[to], headers=headers)
        if letter.html:
            message.attach_alternative(letter.html, "text/html")
        for attachment in letter.attachments:
            message.attach(*attachment)
        return message

    def _open(self, deadline: ConnectionDeadline) -> None:
        self._connection = self._connection or _connection()
        mail_socket.watch(self._connection, deadline.watch)
        try:
            self._connection.open()
        except Exception as error:
            self._close()
            self._unreachable = True
            raise Unreachable(say.MAIL_AWAY.format(error=_words(error))) from error

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is None:
            return
        # The connection is given up, so its last error says nothing.
        with suppress(Exception), ConnectionDeadline(CLOSE_SECONDS) as deadline:
            mail_socket.watch(connection, deadline.watch)
            connection.close()


def _connection() -> Any:
    """A new connection of the mail backend. Django 6.1 has a handler for them instead of `get_connection`."""
    mailers = getattr(mail, "mailers", None)
    connection: Any = mail.get_connection() if mailers is None else mailers.default
    connection.timeout = time_limit()  # the name of the SMTP backend's attribute; other backends ignore it
    return connection


def _refusal(code: int, said: bytes | str) -> Exception:
    """The error for an answer of the server: 4xx is for now, 5xx is for good (RFC 5321, 4.2.1)."""
    words = said.decode("utf-8", "replace") if isinstance(said, bytes) else said
    text = visible_text(say.MAIL_ANSWERED.format(status=code, words=words), 500)
    return NotSent(text) if 400 <= code < 500 else Refused(text)


def _words(error: BaseException) -> str:
    return visible_text(f"{type(error).__name__}: {error}", 400)
