"""What is sent, and how a sending can end. E-mail, chats and webhooks share these words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


class Undelivered(Exception):
    """A message was not delivered, or it is unknown whether it was. The error's text is a sentence."""

    done: frozenset[str] = frozenset()
    """What is known of the addresses of a channel of e-mail addresses (`address_notes`). A retry needs it."""


class Refused(Undelivered):
    """The message will not be sent to this recipient, also not later."""


class NotSent(Undelivered):
    """The server took no message now. A later try can work, and the recipient gets one copy only.

    Args:
        retry_after: after how many seconds the server wants the next try; None if it did not say so.
    """

    def __init__(self, text: str = "", *, retry_after: float | None = None) -> None:
        super().__init__(text)
        self.retry_after = retry_after


class Unreachable(NotSent):
    """The mail server cannot be reached, so no other message can be sent now."""


class Unsure(Undelivered):
    """The server did not answer after it had got the message. The recipient may have a copy."""


class UnsureOfSome(Unsure):
    """The same of some e-mail addresses. `done` says of which, and they are counted there, each by itself."""


@dataclass(frozen=True)
class Letter:
    """The content of a message. `attachments` are triples of file name, content and content type.

    A chat and a webhook get the subject and the text only.
    """

    subject: str
    text: str
    html: str = ""
    attachments: Sequence[tuple[str, bytes, str]] = ()
