"""A JSON object in a form: shown indented, and an error says where it is and what to do."""

from __future__ import annotations

import json
import math
import re
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from scheduling.admin.text import is_storable, shown

MAX_LENGTH = 200_000
"""Characters; what an operator edits by hand is far below."""

MAX_DEPTH = 50
_HALF = re.compile("[\ud800-\udfff]")


DEEPEST = 100
"""Levels of lists and objects that are shown."""


def pretty(value: Any) -> str:
    """Indented JSON in the order in which it is stored."""
    if _deeper_than(value, DEEPEST):
        # Only a foreign message can hold such a thing; the page must not break for it. Indented, its text
        # would grow with the square of its depth.
        return str(_("It is nested too deeply to be shown."))
    text = json.dumps(value, indent=2, ensure_ascii=False, default=str)
    # Halves of a character pair cannot be sent to a browser; written as JSON has them they stay what they are.
    return _HALF.sub(lambda half: f"\\u{ord(half[0]):04x}", text)


def _deeper_than(value: Any, limit: int) -> bool:
    level = [value]
    for _depth in range(limit + 1):
        level = [
            inner
            for each in level
            if isinstance(each, dict | list)
            for inner in (each.values() if isinstance(each, dict) else each)
        ]
        if not level:
            return False
    return True


class PrettyJSONWidget(forms.Textarea):
    """A text area that is as tall as its JSON, within limits."""

    def __init__(self, attrs: dict[str, Any] | None = None) -> None:
        super().__init__({"cols": 60, "class": "sch-json vLargeTextField", "spellcheck": "false", **(attrs or {})})

    def get_context(self, name: str, value: Any, attrs: dict[str, Any] | None) -> dict[str, Any]:
        """Set the rows by the text."""
        context = super().get_context(name, value, attrs)
        lines = str(value or "").count("\n") + 1
        context["widget"]["attrs"]["rows"] = min(max(lines + 1, 4), 24)
        return context


class PrettyJSONField(forms.JSONField):
    """A form field for a JSON object. Empty is `{}`.

    Refused with a sentence: text that is no JSON (with line, column and what stands there), other
    values than objects, a name given twice, NaN and Infinity, and characters that databases refuse.
    """

    widget = PrettyJSONWidget
    objects_only = True
    default_error_messages = {
        "invalid": _("This is not JSON: %(what)s at line %(line)s, column %(column)s, near %(near)s."),
        "object": _('Write a JSON object, such as {"region": "eu"}.'),
        "twice": _("The name %(name)s is given twice; keep one."),
        "number": _("JSON has no number %(name)s; write a finite number, or null."),
        "deep": _("This is nested too deeply; use a flatter object."),
        "number_size": _("A number in it has too many digits to be read."),
        "characters": _("It holds a NUL or half of a character pair, which databases refuse."),
        "long": _("It has %(length)s characters; at most %(limit)s are taken."),
    }

    def __init__(self, **kwargs: Any) -> None:
        kwargs.setdefault("required", False)
        super().__init__(**kwargs)

    def to_python(self, value: Any) -> Any:
        """The object, or a ValidationError that names the place."""
        if self.disabled or isinstance(value, dict):
            return value
        text = str(value or "").strip()
        if not text:
            return {}
        if len(text) > MAX_LENGTH:
            raise self._error("long", length=len(text), limit=MAX_LENGTH)
        try:
            found = json.loads(text, object_pairs_hook=self._pairs, parse_constant=self._constant)
        except json.JSONDecodeError as error:
            line = text.splitlines()[error.lineno - 1] if text else ""
            near = line[max(error.colno - 11, 0) : error.colno + 10].strip()
            raise self._error(
                "invalid",
                what=_sentence(error.msg),
                line=error.lineno,
                column=error.colno,
                near=f"“{shown(near)}”" if near else str(_("the end")),
            ) from None
        except RecursionError:
            raise self._error("deep") from None
        except ValidationError:
            raise
        except ValueError:
            # Python refuses to convert numbers of thousands of digits.
            raise self._error("number_size") from None
        if self.objects_only and not isinstance(found, dict):
            raise self._error("object")
        self._refuse_unusable(found)
        return found

    def prepare_value(self, value: Any) -> Any:
        """Indented, unless it is the text that was just refused."""
        if isinstance(value, str):
            return value
        return "{}" if value in (None, {}) else pretty(value)

    def bound_data(self, data: Any, initial: Any) -> Any:
        """What was posted is shown again as it was, also when it is wrong."""
        return initial if self.disabled else data

    def has_changed(self, initial: Any, data: Any) -> bool:
        """Compare values, not their spelling."""
        try:
            # As text: to Python, True equals 1.
            return json.dumps(initial or {}, sort_keys=True) != json.dumps(self.to_python(data), sort_keys=True)
        except ValidationError:
            return True

    def _refuse_unusable(self, found: Any) -> None:
        waiting: list[tuple[Any, int]] = [(found, 1)]
        while waiting:
            value, depth = waiting.pop()
            if depth > MAX_DEPTH:
                raise self._error("deep")
            if isinstance(value, dict):
                waiting += [(part, depth + 1) for pair in value.items() for part in pair]
            elif isinstance(value, list):
                waiting += [(part, depth + 1) for part in value]
            elif isinstance(value, str) and not is_storable(value):
                raise self._error("characters")
            elif isinstance(value, float) and not math.isfinite(value):
                raise self._error("number", name=str(value))  # 1e999 becomes infinity

    def _error(self, code: str, **params: Any) -> ValidationError:
        return ValidationError(self.error_messages[code], code=code, params=params)

    def _pairs(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, value in pairs:
            if name in found:
                # json would silently keep the last one.
                raise self._error("twice", name=f"“{shown(name, 60)}”")
            found[name] = value
        return found

    def _constant(self, name: str) -> Any:
        raise self._error("number", name=name)


def _sentence(message: str) -> str:
    """The parser's words, to stand within a sentence."""
    return message[:1].lower() + message[1:].rstrip(".")
