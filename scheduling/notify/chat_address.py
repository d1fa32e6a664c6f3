"""Says why the address of a chat or a webhook cannot be used. The sentences never repeat it, because it is a secret."""

from __future__ import annotations

import os
from collections.abc import Sequence

from django.utils.translation import gettext as _

from scheduling.core.chat_services import SCHEMES, ChatService, scheme_of, variable_of
from scheduling.models.channel import ADDRESS_LENGTH

INSTALL = "pip install 'cronsite[notify]'"


class ChatAddressError(ValueError):
    """An address or a secret cannot be used. The error's text is a sentence without any part of it."""


class VariableMissing(ChatAddressError):
    """The environment variable that holds the address is not set in this process."""


def resolved(address: str) -> str:
    """The address, or the value of the environment variable that it names.

    Raises:
        ChatAddressError: the text is no address at all.
    """
    text = from_environment(address)
    _check_text(text)
    return text


def from_environment(text: str) -> str:
    """The text, or the value of the environment variable that it names. Spaces around it are removed.

    Raises:
        ChatAddressError: the text is meant as the name of a variable, and is none. VariableMissing: it is not set.
    """
    text = text.strip()
    if not text.startswith("$"):
        return text
    variable = variable_of(text)
    if not variable:
        raise ChatAddressError(_("The name of the variable must look like ${CRON_CHAT_TEAM}, with nothing around it."))
    value = os.environ.get(variable, "").strip()
    if not value:
        said = _("The environment variable %(name)s is not set in this process.")
        raise VariableMissing(said % {"name": variable})
    return value


def _check_text(text: str) -> None:
    if len(text) > ADDRESS_LENGTH:
        raise ChatAddressError(_("The address has more than %(count)d characters.") % {"count": ADDRESS_LENGTH})
    if not text.isascii() or not text.isprintable() or " " in text:
        raise ChatAddressError(_("The address has a space or a character that must be percent-encoded."))
    if scheme_of(text) in ("mailto", "mailtos"):
        raise ChatAddressError(_("This is an e-mail address. Choose the kind “e-mail addresses” for it."))


def not_possible(schemes: Sequence[str]) -> ChatAddressError:
    """The error for an address that begins with another scheme."""
    said = _("This kind of address is not possible. The address must begin with one of: %(schemes)s.")
    # One scheme of each service is enough for a sentence.
    firsts = {SCHEMES[scheme].name: scheme for scheme in reversed(schemes)}
    names = [f"{scheme}://" for scheme in reversed(firsts.values())]
    return ChatAddressError(said % {"schemes": ", ".join(names) or _("none")})


def incomplete(service: ChatService, templates: Sequence[str]) -> ChatAddressError:
    """The error for an address that apprise cannot read."""
    said = _("This is not a complete address for %(service)s. Such an address looks like %(template)s.")
    return ChatAddressError(said % {"service": service.name, "template": _(" or ").join(templates[:3])})


def option_refused(service: ChatService) -> ChatAddressError:
    """The error for an option after the question mark that is not allowed."""
    names = sorted(service.options)
    if service.prefixes:
        names.append(_("names that begin with %(signs)s") % {"signs": _(" or ").join(service.prefixes)})
    said = _("The address has an option that is not possible here. Possible for %(service)s: %(names)s.")
    return ChatAddressError(said % {"service": service.name, "names": ", ".join(names) or _("none")})


def too_many(count: int) -> ChatAddressError:
    """The error for an address with several recipients. A retry could not send to the missing ones alone."""
    said = _("The address names %(count)d recipients. Make a channel for each of them.")
    return ChatAddressError(said % {"count": count})


def not_installed() -> ChatAddressError:
    """The error in an installation without the extra."""
    return ChatAddressError(_("Chats need the package apprise. Install it with: %(command)s") % {"command": INSTALL})
