"""Reads and checks ping URLs. A ping URL is a secret, so no sentence repeats it."""

from __future__ import annotations

import os

from django.utils.translation import gettext as _

from scheduling.core.chat_services import variable_of
from scheduling.core.pings import URL_LENGTH, VARIABLE, is_url
from scheduling.handlers.secret_params import MASK
from scheduling.notify.guarded_http import IS_INSTALLED, Forbidden, check_host

INSTALL = "pip install 'cronsite[http]'"


def problem(text: str) -> str:
    """A sentence that says why this text is no ping URL that can be called; empty if it is one.

    The value of an environment variable is not checked, because the variable may be set in other processes only.
    """
    if not IS_INSTALLED:
        return _("Pings need the package requests-hardened. Install it with: %(command)s") % {"command": INSTALL}
    if variable_of(text, VARIABLE):
        return ""
    if not is_url(text):
        said = _(
            "Write an address that begins with http:// or https:// and has at most %(most)d characters, or the name of "
            "an environment variable, such as ${CRON_PING_NIGHTLY}."
        )
        return said % {"most": URL_LENGTH}
    try:
        check_host(text)
    except Forbidden as error:
        return str(error)
    return ""


def shown(text: str) -> str:
    """What may be shown of a ping URL: the name of the environment variable, or a mask; empty if there is none."""
    if not text:
        return ""
    variable = variable_of(text, VARIABLE)
    return f"${{{variable}}}" if variable else MASK


def resolved(text: str) -> tuple[str, str]:
    """The URL, or that of the environment variable that the text names; and why it cannot be used, else empty."""
    url = text.strip()
    if variable := variable_of(url, VARIABLE):
        url = os.environ.get(variable, "").strip()
        if not url:
            return "", f"The environment variable {variable} is not set in this process."
    return (url, "") if is_url(url) else ("", "The ping URL cannot be read.")
