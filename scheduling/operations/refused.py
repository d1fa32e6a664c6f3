"""Refused: why something is not done. Each door says it in its own form: a page, a problem document, a sentence."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from django.utils.translation import gettext as _

from scheduling.core import retry
from scheduling.core.text import visible_text

SENTENCE_LIMIT = 1_000


class Code(StrEnum):
    """Names a reason. Scripts compare it, so it never changes."""

    FORBIDDEN = "FORBIDDEN"
    NOT_FOUND = "NOT_FOUND"
    AMBIGUOUS = "AMBIGUOUS"
    """A name or a beginning of one matches several rows."""
    INVALID = "INVALID"
    """Values cannot be used. `problems` has a sentence for each of them."""
    RETRY_POLICY_INVALID = retry.INVALID
    CHANGED = "CHANGED"
    """The row has changed since it was read."""
    CONFLICT = "CONFLICT"
    """The present state does not allow it."""
    COUNT_DIFFERS = "COUNT_DIFFERS"
    """The typed number differs from the number of the selected rows."""
    HELD = "HELD"
    """The database was copied or restored, and no person has confirmed it yet."""
    UNUSABLE_VALUE = "UNUSABLE_VALUE"
    """Plain SQL has stored a value that cannot be used."""
    BROKER_AWAY = "BROKER_AWAY"
    DATABASE_AWAY = "DATABASE_AWAY"


@dataclass(frozen=True)
class Problem:
    """One value that cannot be used: its field, a code and a sentence."""

    field: str
    code: str
    message: str


@dataclass
class Refused(Exception):
    """Nothing was done, or only what `extra` says.

    Args:
        code: the reason, for scripts.
        said: a sentence for people.
        problems: one for each wrong value.
        extra: further facts for scripts, such as the present version of a row.
    """

    code: str
    said: str
    problems: tuple[Problem, ...] = ()
    extra: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.said

    @classmethod
    def forbidden(cls, permission: str, door: str = "") -> Refused:
        """The permission is missing.

        Args:
            door: the token that does not allow what its owner may do; empty if the user lacks the permission.
        """
        said = _("This asks for the permission “%(permission)s”.") % {"permission": permission}
        if door:
            limited = _("The %(door)s does not allow this, although its owner may do it: it asks for “%(permission)s”.")
            said = limited % {"door": door, "permission": permission}
        return cls(Code.FORBIDDEN, said, extra={"permission": permission})

    @classmethod
    def invalid(cls, problems: Iterable[Problem]) -> Refused:
        """Some values cannot be used. If there is only one, its own code and sentence tell the reason."""
        found = tuple(problems)
        codes = {problem.code for problem in found}
        code = Code.RETRY_POLICY_INVALID if Code.RETRY_POLICY_INVALID in codes else Code.INVALID
        said = " ".join(
            f"{problem.field}: {problem.message}" if problem.field else problem.message for problem in found
        )
        return cls(code, visible_text(said, SENTENCE_LIMIT), found)

    @classmethod
    def value(cls, name: str, message: str, code: str = "invalid") -> Refused:
        """One value cannot be used."""
        return cls.invalid([Problem(name, code, message)])


def problems_of(error: ValidationError) -> list[Problem]:
    """The problems that a model has found, in the order of its fields."""
    if not hasattr(error, "error_dict"):
        return [Problem("", str(one.code or "invalid"), _sentence(one)) for one in error.error_list]
    return [
        Problem("" if name == NON_FIELD_ERRORS else name, str(one.code or "invalid"), _sentence(one))
        for name, errors in error.error_dict.items()
        for one in errors
    ]


def _sentence(error: ValidationError) -> str:
    return visible_text(" ".join(error.messages), SENTENCE_LIMIT)
