"""The result of a run as JSON text. It is stored with the attempt."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from scheduling.core import json_bounds

LONGEST_RESULT = 64_000
"""The greatest length of a stored result as JSON, in bytes."""


def encode(value: Any) -> str:
    """The value as JSON text; empty for None.

    Raises:
        scheduling.core.json_bounds.NotStorable: the value is not JSON, is too long, or no database stores it. Its text
            is the second part of a sentence.
    """
    if value is None:
        return ""
    try:
        text = json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise json_bounds.NotStorable("json", f"is not JSON: {error}") from None
    if len(text) > LONGEST_RESULT:
        raise json_bounds.NotStorable(
            "long", f"has {len(text):,} bytes as JSON; {LONGEST_RESULT:,} are stored at most."
        )
    json_bounds.loads(text)
    return text


def decode(text: str) -> Any:
    """The value of a stored result; None if there is none, or if plain SQL has written something else."""
    try:
        return json.loads(text) if text else None
    except (ValueError, RecursionError):
        return None


def masked_result(text: object, mask: Callable[[str], str]) -> str:
    """A result that a child has reported, with masked secrets; empty if it is not one.

    Every text and every key in the result is masked by itself, so that the result stays JSON.
    """
    if not isinstance(text, str) or not text:
        return ""
    try:
        return encode(_masked(json_bounds.loads(text), mask))
    except json_bounds.NotStorable:
        return ""


def _masked(value: Any, mask: Callable[[str], str]) -> Any:
    match value:
        case str():
            return mask(value)
        case list():
            return [_masked(item, mask) for item in value]
        case dict():
            return {mask(name): _masked(item, mask) for name, item in value.items()}
        case _:
            return value
