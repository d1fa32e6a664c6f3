"""Signs the messages to webhooks, and verifies them. A receiver may import `verify`; it needs no Django.

The header `CRON-Signature` looks like `t=1765526400,v1=5257a869…`: the time of the sending as a Unix time, and the
HMAC-SHA256 of `<time>.<body>` with the secret as its key, in hexadecimal digits.
"""

from __future__ import annotations

import hmac
import time
from collections.abc import Sequence

HEADER = "CRON-Signature"
DELIVERY_HEADER = "CRON-Delivery"
"""It has the delivery id, which is the same in each try, so that a receiver can recognise a copy."""

TOLERANCE = 300.0
LONGEST = 1_000
"""A longer header is not looked at, in characters."""


class SignatureInvalid(ValueError):
    """The message was not signed with this secret, or is too old. The error's text is a sentence."""


def sign(body: bytes, secret: str, at: int) -> str:
    """The value of the header `CRON-Signature`.

    Args:
        at: the time of the sending, in seconds since 1970 (UTC).
    """
    return f"t={at},v1={_digest(body, secret, str(at))}"


def verify(
    body: bytes, header: str | None, secret: str | Sequence[str], tolerance: float = TOLERANCE, now: float | None = None
) -> None:
    """Check that a message was signed with the secret, a short time ago.

    Args:
        body: the body of the request, byte for byte as it came. JSON that was read and written again differs.
        header: the value of the header `CRON-Signature`; None if the request has none.
        secret: the secret of the channel, or several of them while a secret is being replaced.
        tolerance: how many seconds the clocks of the two machines and the way may take. So an old message that was
            recorded cannot be sent again.
        now: the present time, in seconds since 1970; None means the clock of this machine.

    Raises:
        SignatureInvalid: the message must not be trusted. No other error is raised for what comes from outside.
        ValueError: no secret is given, or an empty one. Everybody could sign with it.
    """
    secrets = [secret] if isinstance(secret, str) else list(secret)
    if not secrets or not all(secrets):
        raise ValueError("The secret is empty.")
    text, digests = _parts(header or "")
    right = [_digest(body, key, text) for key in secrets]
    # Digests are compared in constant time, so that the time of the answer tells nothing about the right one.
    if not any(hmac.compare_digest(digest, given) for digest in right for given in digests):
        raise SignatureInvalid("The message was not signed with this secret.")
    if abs((time.time() if now is None else now) - int(text)) > tolerance:
        raise SignatureInvalid(f"The message was not signed within the last {tolerance:g} s.")


def _parts(header: str) -> tuple[str, list[str]]:
    """The time and the digests of a header."""
    pairs = [part.strip().partition("=") for part in header.split(",")] if len(header) <= LONGEST else []
    times = [value for name, _sign, value in pairs if name == "t"]
    digests = [value for name, _sign, value in pairs if name == "v1" and value.isascii()]
    if len(times) != 1 or not (times[0].isascii() and times[0].isdecimal() and len(times[0]) <= 18) or not digests:
        raise SignatureInvalid("The header must look like t=1765526400,v1=5257a869….")
    return times[0], digests


def _digest(body: bytes, secret: str, at: str) -> str:
    return hmac.new(secret.encode(), at.encode() + b"." + body, "sha256").hexdigest()
