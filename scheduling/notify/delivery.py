"""What is sent, and how a sending can end. E-mail and chats share these words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


class Refused(Exception):
    """The message will not be sent to this recipient, also not later. The error's text is a sentence."""


class NotSent(Exception):
    """The server took no message now. A later try can work, and the recipient gets one copy only."""


class Unreachable(NotSent):
    """The mail server cannot be reached, so no other message can be sent now."""


class Unsure(Exception):
    """The server did not answer after it had got the message. The recipient may have a copy."""


@dataclass(frozen=True)
class Letter:
    """The content of a message. `attachments` are triples of file name, content and content type.

    A chat gets the subject and the text only.
    """

    subject: str
    text: str
    html: str = ""
    attachments: Sequence[tuple[str, bytes, str]] = ()
