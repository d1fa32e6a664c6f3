"""Checks that a JSON value can be stored on every database. Messages, forms and `save` use this one rule.

MariaDB refuses 32 levels of nesting, and PostgreSQL refuses NUL characters. UTF-8 cannot encode half of a surrogate
pair. JSON has no NaN and no infinity, but Python's JSON parser accepts them. The parser also accepts whole numbers that
are too large for a database column.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from typing import Any

from scheduling.core.words import gettext as _

MAX_DEPTH = 30
MAX_CHARS = 1_000_000
LOW, HIGH = -(2**63), 2**63 - 1


class NotStorable(ValueError):
    """A value cannot be stored.

    The text is the second part of an English sentence, such as "is not JSON". It is for logs, for faults in code and
    for what is stored. `about` makes the whole sentence for users.

    Args:
        code: `json`, `twice`, `deep`, `long`, `whole`, `finite` or `characters`.
        detail: what is wrong about a text that is no JSON.
    """

    def __init__(self, code: str, text: str, detail: object = "") -> None:
        super().__init__(text)
        self.code, self.detail = code, str(detail)

    def about(self, subject: str) -> str:
        """The sentence in the present language.

        Args:
            subject: the value at the beginning of a sentence, such as "The JSON".
        """
        said = {
            "json": _("{subject} is not JSON: {detail}"),
            "twice": _("{subject} names a value twice in one object."),
            "deep": _("{subject} is nested deeper than {levels} levels."),
            "long": _("{subject} is longer than {length} characters."),
            "whole": _("{subject} holds a whole number beyond 64 bits."),
            "finite": _("{subject} holds NaN or infinity."),
            "characters": _("{subject} holds NUL or half a character, which no database stores."),
        }[self.code]
        return said.format(subject=subject, detail=self.detail, levels=MAX_DEPTH, length=MAX_CHARS)


def loads(text: str | bytes, object_of: Callable[[list[tuple[str, Any]]], Any] | None = None) -> Any:
    """Parse JSON and check the value.

    Args:
        object_of: makes each object from its names and values, and may raise NotStorable. None: a dict, in which the
            last value of a name counts.

    Raises:
        NotStorable: the text is not JSON, or `check` refuses its value.
    """
    try:
        value = json.loads(text, object_pairs_hook=object_of)
    except NotStorable:
        raise
    except (ValueError, RecursionError) as error:
        raise NotStorable("json", f"is not JSON: {error}", error) from None
    check(value)
    return value


def check(value: Any, longest: int | None = None) -> None:
    """Refuse a JSON value that one of the databases refuses, or that is too long.

    Args:
        longest: as JSON, the value has at most so many characters, if the caller knows it.

    Raises:
        NotStorable: the value is refused.
    """
    for depth, level in enumerate(_levels(value)):
        if depth > MAX_DEPTH:
            raise NotStorable("deep", f"is nested deeper than {MAX_DEPTH} levels.")
        for item in level:
            _check_scalar(item)
    if longest is not None and longest <= MAX_CHARS:
        return
    if len(json.dumps(value, ensure_ascii=False, default=str)) > MAX_CHARS:
        raise NotStorable("long", f"is longer than {MAX_CHARS} characters.")


def is_deeper(value: Any, depth: int) -> bool:
    """Whether a JSON value is nested deeper than so many levels. A number or a text has no level."""
    return any(number > depth for number, _level in enumerate(_levels(value)))


def problem(subject: str, value: Any) -> str:
    """The sentence that says why `check` refuses the value; empty if it does not.

    Args:
        subject: as `NotStorable.about`.
    """
    try:
        check(value)
    except NotStorable as error:
        return error.about(subject)
    return ""


def is_storable(text: str) -> bool:
    """Whether every database can store the text. The text must contain no NUL and no half of a surrogate pair."""
    return "\x00" not in text and not any("\ud800" <= char <= "\udfff" for char in text)


def _levels(value: Any) -> Iterator[list[Any]]:
    """The value, then what it contains, then what this contains, and so on.

    The function is not recursive, because a deeply nested value could exhaust the stack.
    """
    level = [value]
    while level:
        yield level
        level = [child for item in level for child in _children(item)]


def _children(item: Any) -> list[Any]:
    match item:
        case dict():
            return [*item.keys(), *item.values()]
        case list() | tuple():
            return list(item)
        case _:
            return []


def _check_scalar(item: Any) -> None:
    match item:
        case bool() | None:
            return
        case int() if not LOW <= item <= HIGH:
            raise NotStorable("whole", "holds a whole number beyond 64 bits.")
        case float() if not math.isfinite(item):
            raise NotStorable("finite", "holds NaN or infinity.")
        case str() if not is_storable(item):
            raise NotStorable("characters", "holds NUL or half a character, which no database stores.")
