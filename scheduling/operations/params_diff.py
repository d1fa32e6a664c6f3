"""Compares parameters before and after an edit, for pages and audit entries. Secrets stay masked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from scheduling.core.text import visible_text
from scheduling.handlers import Handler
from scheduling.handlers.secret_params import MASK, masked, secret_names

VALUE_MAX_CHARS = 500
"""A value is cut after this many characters, to keep pages and audit entries short."""


@dataclass(frozen=True)
class Change:
    """One parameter or field whose value differs. `old` and `new` are text, or None if the parameter had no value."""

    name: str
    old: str | None
    new: str | None


def changes(
    handler: Handler | None,
    old: Mapping[str, Any],
    new: Mapping[str, Any],
    limit: int = VALUE_MAX_CHARS,
    other: Handler | None = None,
) -> list[Change]:
    """The changed parameters. The parameters in `old` come first, then the parameters that are only in `new`.

    Args:
        limit: each value is cut after this many characters.
        other: the handler for which `old` or `new` was written, if that handler is not `handler`. A parameter that is
            secret for one of the two handlers is masked in both `old` and `new`.
    """
    names = [*old, *(name for name in new if name not in old)]
    before, after = (masked(other, masked(handler, dict(params))) for params in (old, new))
    return [
        Change(visible_text(name, 80), _said(before, name, limit), _said(after, name, limit))
        for name in names
        if (name in old) != (name in new) or _text(old[name]) != _text(new[name])
    ]


def unmask(handler: Handler | None, old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of `new` in which each secret that is still masked gets its value from `old`."""
    secret = secret_names(handler)
    return {
        name: old[name] if name in secret and name in old and value == MASK else value for name, value in new.items()
    }


def masked_names(params: Mapping[str, Any]) -> list[str]:
    """The names of the parameters that are still masked. The mask must not be stored as a secret."""
    return [name for name, value in params.items() if value == MASK]


def hidden_words() -> str:
    """Why a secret that is still masked is refused."""
    return _("It was hidden, and is not known for this code: write it again.")


def _said(params: Mapping[str, Any], name: str, limit: int) -> str | None:
    return visible_text(_text(params[name]), limit) if name in params else None


def _text(value: Any) -> str:
    # JSON text is compared, because Python treats `True` and `1` as equal.
    return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
