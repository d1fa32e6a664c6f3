"""Replaces the secret parameters of a run in everything that the run prints and reports."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from typing import Any
from urllib.parse import quote

from scheduling.core.messages import TaskMessage
from scheduling.handlers.params import merge
from scheduling.handlers.registry import Handler
from scheduling.handlers.run_config import RunConfig
from scheduling.handlers.secret_headers import secret_header_values
from scheduling.handlers.secret_params import MASK, secret_names
from scheduling.handlers.targets import handler_named

SHORTEST = 4
"""A shorter value is not replaced, because it would also replace parts of ordinary words and numbers."""

LONGEST = 4_096
"""Only so many characters of a value are looked for."""

MOST = 200
"""At most so many texts are looked for."""


def secret_values(handler: Handler | None, params: dict[str, Any]) -> list[str]:
    """The texts that must not be shown: the values of secret parameters, as they are and as they are usually written.

    A line of a value counts by itself, because a logged text has a mark before each line.
    """
    found: set[str] = set()
    for name in secret_names(handler) & params.keys():
        for value in _leaves(params[name]):
            for part in {value, *value.splitlines()}:
                found |= _written(part)
    return sorted(found, key=lambda text: (-len(text), text))[:MOST]


def _written(value: str) -> set[str]:
    """A value as it is, and as it is usually written; empty for a short one."""
    text = value.strip()[:LONGEST]
    if len(text) < SHORTEST:
        return set()
    return {text, json.dumps(text)[1:-1], repr(text)[1:-1], quote(text, safe="")}


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for item in value.values():
            yield from _leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item)
    elif value is not None and not isinstance(value, bool):
        yield str(value)


class SecretFilter:
    """Masks some texts in texts and in a stream of bytes.

    Args:
        values: the texts to mask; at least one.
    """

    def __init__(self, values: Iterable[str]) -> None:
        encoded = sorted((value.encode("utf-8", "replace") for value in values), key=len, reverse=True)
        self._values = encoded
        self._pattern = re.compile(b"|".join(re.escape(value) for value in encoded))
        self._held = b""

    def twin(self) -> SecretFilter:
        """A filter of the same texts for another stream."""
        twin = copy(self)
        twin._held = b""
        return twin

    def text(self, text: str) -> str:
        """The text with masked values."""
        return self._pattern.sub(_MASK, text.encode("utf-8", "replace")).decode("utf-8", "replace")

    def feed(self, data: bytes) -> bytes:
        """The next bytes of the stream, masked. An end that may be the beginning of a value is held back."""
        data = self._pattern.sub(_MASK, self._held + data)
        held = max((_overlap(data, value) for value in self._values), default=0)
        self._held = data[len(data) - held :] if held else b""
        return data[: len(data) - held]

    def rest(self) -> bytes:
        """The bytes that were held back. The stream is over, so they are no value."""
        held, self._held = self._held, b""
        return held


def secrets_of(message: TaskMessage, config: RunConfig) -> SecretFilter | None:
    """The filter for a run; None if the run has no secret parameters."""
    values = secret_texts(message, config)
    return SecretFilter(values) if values else None


def secret_texts(message: TaskMessage, config: RunConfig) -> list[str]:
    """The texts that must not be shown of a run."""
    params = message.params if isinstance(message.params, dict) else {}
    handler = handler_named(message.type, config.handler)
    return texts_of(handler, merge(config.target_params, params), message.headers)


def texts_of(handler: Handler | None, params: dict[str, Any], headers: Mapping[str, str]) -> list[str]:
    """The texts that must not be shown of a run with these params and headers."""
    values = secret_values(handler, params)
    if headers:
        values += [text for value in secret_header_values(headers) for text in _written(value)]
    return values


_MASK = MASK.encode()


def _overlap(data: bytes, value: bytes) -> int:
    """The length of the longest end of the data with which the value begins, but not the whole value."""
    longest = min(len(value) - 1, len(data))
    return next((length for length in range(longest, 0, -1) if data.endswith(value[:length])), 0)
