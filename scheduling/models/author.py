"""Author: in whose name a schedule is changed. The door through which the change comes says so around the change."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace

from django.db import models
from django.utils.translation import gettext_lazy as _


class AuthorKind(models.TextChoices):
    """What has changed a schedule."""

    USER = "user", _("a user")
    TOKEN = "token", _("an API token")
    COMMAND = "command", _("a command")
    FILE = "file", _("a schedule file")
    CODE = "code", _("code")
    FIXTURE = "fixture", _("a fixture")
    SQL = "sql", _("plain SQL")
    SYSTEM = "system", _("the software itself")
    UNKNOWN = "unknown", _("unknown")


@dataclass(frozen=True)
class Author:
    """Who changes a schedule.

    Args:
        name: the user, with the token or file; empty if the kind says all.
        reason: why, in the words of the author.
        undoes: the number of the revision that the change takes back.
    """

    kind: AuthorKind
    name: str = ""
    reason: str = ""
    undoes: int | None = None


CODE = Author(AuthorKind.CODE)
PLAIN_SQL = Author(AuthorKind.SQL)
FIXTURE = Author(AuthorKind.FIXTURE)
UNKNOWN = Author(AuthorKind.UNKNOWN)

_present: ContextVar[Author] = ContextVar("scheduling_author", default=CODE)


def present_author() -> Author:
    """The author of the changes that are made now."""
    return _present.get()


@contextmanager
def authored(author: Author) -> Iterator[None]:
    """Changes inside the block are made by this author. An outer reason stays, if the author gives none."""
    outer = _present.get()
    own = author if author.reason or outer is CODE else replace(author, reason=outer.reason, undoes=outer.undoes)
    token = _present.set(own)
    try:
        yield
    finally:
        _present.reset(token)
