"""The secret that signs the messages to a webhook."""

from __future__ import annotations

import secrets

from django.utils.translation import gettext as _

from scheduling.notify.chat_address import ChatAddressError, VariableMissing, from_environment

SHORTEST, LONGEST = 16, 200
"""How many characters a secret has. The column holds no more."""


def make_secret() -> str:
    """A new secret with 256 random bits."""
    return f"cronhook_{secrets.token_urlsafe(32)}"


def check_secret(text: str) -> None:
    """Check a typed secret. A secret from an environment variable is checked if the variable is set in this process.

    Raises:
        ChatAddressError: the secret cannot be used.
    """
    try:
        resolved_secret(text)
    except VariableMissing:
        return


def resolved_secret(text: str) -> str:
    """The secret, or the value of the environment variable that it names.

    Raises:
        ChatAddressError: the secret cannot be used.
    """
    value = from_environment(text)
    if not value:
        raise ChatAddressError(_("The webhook has no secret. Give it one on the page of the channel."))
    if not SHORTEST <= len(value) <= LONGEST or not (value.isascii() and value.isprintable() and " " not in value):
        said = _("The secret must have %(low)d to %(high)d ASCII characters and no space.")
        raise ChatAddressError(said % {"low": SHORTEST, "high": LONGEST})
    return value
