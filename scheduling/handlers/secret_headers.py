"""Masks the headers of a run whose names say that they are secret."""

from __future__ import annotations

import re
from collections.abc import Mapping

from scheduling.handlers.secret_params import MASK

_SECRET = re.compile(r"auth|token|secret|passw|cookie|credential|signature|(api|access|private).?key", re.IGNORECASE)


def masked_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers, in which the values of secret ones are replaced by `MASK`. Empty values stay empty."""
    return {name: MASK if value and _SECRET.search(name) else value for name, value in headers.items()}


def secret_header_values(headers: Mapping[str, str]) -> list[str]:
    """The values that must not be shown. Of `Bearer abc`, the last word counts by itself, too."""
    found = {value for name, value in headers.items() if _SECRET.search(name)}
    return sorted(found | {word for value in found for word in value.split()[-1:]})
