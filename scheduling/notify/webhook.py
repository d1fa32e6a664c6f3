"""Sends one signed message to one webhook."""

from __future__ import annotations

import re
import time

from django.utils.translation import gettext as _

from scheduling.core import delivery_sentences as say
from scheduling.core.text import visible_text
from scheduling.notify import signature
from scheduling.notify.chat_address import INSTALL, ChatAddressError, VariableMissing, resolved
from scheduling.notify.delivery import NotSent, Refused, Unsure
from scheduling.notify.guarded_http import (
    ANSWER_LENGTH,
    IS_INSTALLED,
    LATER,
    Answer,
    Forbidden,
    InternalAddress,
    NoAnswer,
    NotConnected,
    check_host,
    send_request,
)
from scheduling.notify.secret_text import without_secrets
from scheduling.notify.time_limit import in_time, time_limit
from scheduling.notify.webhook_secret import resolved_secret

_DELIVERY_ID = re.compile(r"[A-Za-z0-9._:-]{1,200}")


def check_url(address: str) -> None:
    """Check the address of a webhook, without a connection.

    An address from an environment variable is checked if the variable is set in this process.

    Raises:
        ChatAddressError: the address cannot be used.
    """
    if not IS_INSTALLED:
        raise not_installed()
    try:
        url = _url(address)
    except VariableMissing:
        return
    try:
        check_host(url)
    except Forbidden as error:
        raise ChatAddressError(str(error)) from None


def send(address: str, secret: str, body: bytes, delivery_id: str) -> None:
    """Send a signed POST request with a JSON body to one webhook.

    Redirects are not followed. The body and its signature are for one receiver, and a redirect would show them to
    another one. The receiver's answer says whether a later try can work: 408, 425, 429 and 5xx.

    Args:
        address: the URL, or the name of an environment variable, as it is stored.
        secret: the secret, or the name of an environment variable, as it is stored.
        delivery_id: names this message in each try, with letters, digits and `._:-`. The receiver gets it as a header.

    Raises:
        Refused: the address or the secret cannot be used, or the server refuses the message for good.
        NotSent: the server cannot be reached, or refuses the message for now.
        Unsure: the server did not answer while it had the message.
        ValueError: the delivery id cannot be sent as a header.
    """
    if not _DELIVERY_ID.fullmatch(delivery_id):
        raise ValueError("A delivery id has 1 to 200 letters, digits, dots, colons, hyphens and underlines.")
    if not IS_INSTALLED:
        raise Refused(str(not_installed()))
    try:
        url, key = _url(address), resolved_secret(secret)
    except ChatAddressError as error:
        raise Refused(str(error)) from None
    signed = signature.sign(body, key, int(time.time()))
    headers = {
        "Content-Type": "application/json", "User-Agent": "cronsite", signature.HEADER: signed,
        signature.DELIVERY_HEADER: delivery_id,
    }  # fmt: skip
    seconds = time_limit()
    until = time.monotonic() + seconds
    _in_time, end = in_time(
        lambda: send_request("POST", url, seconds, needs_body=False, headers=headers, data=body), until
    )
    if isinstance(end, Answer) and 200 <= end.status <= 299:
        return
    raise _failure(end, [url, key, signed], seconds)


def _failure(end: object, secrets: list[str], seconds: float) -> Exception:
    """The error for a message that the server did not take. `end` is None if the time was over before."""
    match end:
        case InternalAddress():
            return Refused(str(end))
        case NotConnected():
            return NotSent(say.WEBHOOK_AWAY.format())
        case NoAnswer() | None:
            return Unsure(say.WEBHOOK_LATE.format(seconds=f"{seconds:g}"))
        case Answer() if 300 <= end.status <= 399:
            return Refused(say.WEBHOOK_MOVED.format(status=end.status))
        case Answer():
            words = " ".join(without_secrets(end.body.decode("utf-8", "replace"), secrets).split())
            said = say.WEBHOOK_ANSWERED.format(
                status=end.status, words=visible_text(words, ANSWER_LENGTH) or say.NO_TEXT
            )
            return NotSent(said, retry_after=end.retry_after) if end.status in LATER else Refused(said)
    return Refused(say.WEBHOOK_UNUSABLE.format())


def _url(address: str) -> str:
    url = resolved(address)
    if not url.lower().startswith(("http://", "https://")):
        raise ChatAddressError(_("The address of a webhook must begin with https:// or http://."))
    return url


def not_installed() -> ChatAddressError:
    """The error in an installation without the extra."""
    said = _("Webhooks need the package requests-hardened. Install it with: %(command)s")
    return ChatAddressError(said % {"command": INSTALL})
