"""Sends one message to one chat, with apprise."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from django.utils.translation import gettext as _

from scheduling.conf import get_conf
from scheduling.core import delivery_sentences as say
from scheduling.core.chat_services import ChatService
from scheduling.core.text import visible_text
from scheduling.notify.chat_address import ChatAddressError, VariableMissing, incomplete, not_installed, resolved
from scheduling.notify.chat_plugin import IS_INSTALLED, plugin_of, templates
from scheduling.notify.delivery import Letter, NotSent, Refused, Unsure
from scheduling.notify.guarded_http import (
    ANSWER_LENGTH,
    LATER,
    Answer,
    Forbidden,
    InternalAddress,
    NoAnswer,
    NotConnected,
    check_host,
)
from scheduling.notify.secret_text import without_secrets
from scheduling.notify.time_limit import time_limit


def check_address(address: str) -> None:
    """Check the address of a channel, without a connection.

    An address from an environment variable is checked if the variable is set in this process.

    Raises:
        ChatAddressError: the address cannot be used.
    """
    if not IS_INSTALLED:
        raise not_installed()
    try:
        full = resolved(address)
    except VariableMissing:
        return
    from scheduling.notify.chat_http import ChatCall

    call = ChatCall(time.monotonic() + time_limit(), is_rehearsal=True)
    in_time, found = call.run(lambda: _rehearse(call, full))
    if isinstance(found, ChatAddressError):
        raise found
    if not in_time or not isinstance(found, ChatService):
        raise ChatAddressError(_("The address cannot be read."))
    if not call.urls:
        raise incomplete(found, templates(found))


def _rehearse(call: Any, address: str) -> ChatService:
    """Let the plugin write a message. Its requests are noted and not sent, so they say which host it would call."""
    plugin, service = plugin_of(address, get_conf().chat_schemes)
    plugin.notify(title="subject", body="text", body_format="text", notify_type=service.level)
    for url in call.urls:
        try:
            check_host(url)
        except Forbidden as error:
            raise ChatAddressError(str(error)) from None
    return service


def send(address: str, letter: Letter) -> None:
    """Send the subject and the text of the letter to one chat.

    Raises:
        Refused: the address cannot be used, or the server refuses the message for good.
        NotSent: the server cannot be reached, or refuses the message for now.
        Unsure: the server did not answer while it had the message.
    """
    if not IS_INSTALLED:
        raise Refused(str(not_installed()))
    try:
        full = resolved(address)
    except ChatAddressError as error:
        raise Refused(str(error)) from None
    from scheduling.notify.chat_http import ChatCall

    seconds = time_limit()
    call = ChatCall(time.monotonic() + seconds)
    in_time, found = call.run(lambda: _post(full, letter))
    if found is True:
        return
    if isinstance(found, ChatAddressError):
        raise Refused(str(found))
    raise _failure(call, [full, *call.urls, *call.headers], seconds, in_time)


def _post(address: str, letter: Letter) -> bool:
    """Send the message. A text that is longer than the service takes is cut, so that it is one message."""
    plugin, service = plugin_of(address, get_conf().chat_schemes)
    title, body = (letter.subject, letter.text) if letter.text.strip() else ("", letter.subject)
    text = {"title": title, "body": body or "-", "body_format": "text"}
    return bool(plugin.notify(**text, notify_type=service.level, overflow="truncate"))


def _failure(call: Any, secrets: Sequence[str], seconds: float, in_time: bool) -> Exception:
    """The error for a message that the plugin did not send."""
    late = say.CHAT_LATE.format(seconds=f"{seconds:g}")
    if any(isinstance(end, NoAnswer) and not isinstance(end, NotConnected) for end in call.ends):
        return Unsure(late)
    if not in_time:
        return Unsure(late) if call.urls else NotSent(late)
    match call.ends[-1] if call.ends else None:
        case InternalAddress() as end:
            return Refused(str(end))
        case Forbidden():
            return Refused(say.CHAT_UNUSABLE.format())
        case NotConnected():
            return NotSent(say.CHAT_AWAY.format())
        case Answer() as end:
            words = " ".join(without_secrets(end.body.decode("utf-8", "replace"), secrets).split())
            said = say.CHAT_ANSWERED.format(status=end.status, words=visible_text(words, ANSWER_LENGTH) or say.NO_TEXT)
            return NotSent(said, retry_after=end.retry_after) if end.status in LATER else Refused(said)
    return Refused(say.NOT_SENDABLE.format())
