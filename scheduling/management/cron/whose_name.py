"""In whose name a command acts: a user of Django, or a person at the terminal who only reads."""

from __future__ import annotations

import getpass
from typing import Any

from django.contrib.auth import get_user_model
from django.utils.translation import gettext as _

from scheduling.core.text import visible_text
from scheduling.operations.actor import Actor
from scheduling.operations.refused import Code, Refused

VIA = "command"
VARIABLE = "CRON_AS"


def actor_named(name: str) -> Actor:
    """The user with this name.

    Raises:
        Refused: NOT_FOUND; FORBIDDEN if the user is inactive.
    """
    user = _user(name)
    if user is None:
        raise Refused(Code.NOT_FOUND, _("There is no user “%(name)s”.") % {"name": visible_text(name, 100)})
    if not user.is_active:
        said = _("The user “%(name)s” is inactive, so nothing is done in this name.")
        raise Refused(Code.FORBIDDEN, said % {"name": visible_text(name, 100)})
    return Actor(user, via=VIA)


def reader() -> Actor:
    """A person at the terminal who gave no name. This person reads everything, as the database's owner can."""
    return Actor(None, via=VIA)


def changer() -> Actor:
    """The user in whose name a person at the terminal changes something without giving a name.

    This is the user whose name equals the name of the login, or else the only active superuser.

    Raises:
        Refused: FORBIDDEN if there is no such user.
    """
    user = _user(login())
    if user is not None and user.is_active:
        return Actor(user, via=VIA)
    superusers = list(get_user_model()._default_manager.filter(is_superuser=True, is_active=True)[:2])
    if len(superusers) == 1:
        return Actor(superusers[0], via=VIA)
    said = _("Say in whose name this is done: give --as USERNAME, or set %(variable)s.")
    raise Refused(Code.FORBIDDEN, said % {"variable": VARIABLE})


def login() -> str:
    """The name of the login at the operating system; empty if it has none."""
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):  # a container may run as a user without a name
        return ""


def _user(name: str) -> Any:
    users: Any = get_user_model()
    if not name or not name.isprintable():
        return None
    found = users._default_manager.filter(**{users.USERNAME_FIELD: name})[:2]
    return next((user for user in found if user.get_username() == name), None)  # MariaDB ignores case
