"""A form field for a JSON object. The field shows indented JSON. Its error messages say where the mistake is."""

from __future__ import annotations

import json
import math
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from scheduling.core import json_bounds
from scheduling.core.json_faults import json_fault
from scheduling.core.text import visible_text
from scheduling.core.words import quoted

SHOWN_DEPTH = 200
"""A value that is nested deeper is not shown."""


def pretty(value: Any) -> str:
    """The value as indented JSON. The names keep their stored order."""
    # Only a foreign message or a foreign UPDATE can be nested so deeply. The indentation grows with the square of the
    # depth: Python 3.12 and newer would make a text of 75 MB from 5,000 levels.
    if json_bounds.is_deeper(value, SHOWN_DEPTH):
        return str(_("It is nested too deeply to be shown."))
    text = json.dumps(value, indent=2, ensure_ascii=False, default=str)
    # Half of a surrogate pair cannot be sent to a browser, so it is shown as a JSON escape.
    return text.encode(errors="backslashreplace").decode()


class PrettyJSONWidget(forms.Textarea):
    """A text area of 4 to 24 rows. Its height follows the number of lines."""

    def __init__(self, attrs: dict[str, Any] | None = None) -> None:
        super().__init__({"cols": 60, "class": "sch-json vLargeTextField", "spellcheck": "false", **(attrs or {})})

    def get_context(self, name: str, value: Any, attrs: dict[str, Any] | None) -> dict[str, Any]:
        context = super().get_context(name, value, attrs)
        lines = str(value or "").count("\n") + 1
        context["widget"]["attrs"]["rows"] = min(max(lines + 1, 4), 24)
        return context


class PrettyJSONField(forms.JSONField):
    """A form field for a JSON object. An empty text gives `{}`.

    The field refuses text that is not JSON, values other than objects, and a name that is given twice. It refuses NaN,
    Infinity, and characters that some databases refuse. It also refuses text that is too long or nested too deeply.
    Each error message is a sentence. For invalid JSON, the sentence names the line and column.
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
        "whole": _("A whole number in it is too large: databases hold 64 bits."),
        "characters": _("It holds a NUL or half of a character pair, which databases refuse."),
        "long": _("It has %(length)s characters; at most %(limit)s are taken."),
    }

    def __init__(self, **kwargs: Any) -> None:
        kwargs.setdefault("required", False)
        super().__init__(**kwargs)

    def to_python(self, value: Any) -> Any:
        """Parses the text. Raises a ValidationError with a sentence for the user."""
        if self.disabled or isinstance(value, dict):
            return value
        text = str(value or "").strip()
        if not text:
            return {}
        if len(text) > json_bounds.MAX_CHARS:
            raise self._error("long", length=len(text), limit=json_bounds.MAX_CHARS)
        found = self._loads(text)
        if self.objects_only and not isinstance(found, dict):
            raise self._error("object")
        try:
            json_bounds.check(found)
        except json_bounds.NotStorable as error:
            raise self._error(error.code, length=len(text), limit=json_bounds.MAX_CHARS) from None
        return found

    def prepare_value(self, value: Any) -> Any:
        """Indents a stored value. A text that was refused stays as the user wrote it."""
        if isinstance(value, str):
            return value
        return "{}" if value in (None, {}) else pretty(value)

    def bound_data(self, data: Any, initial: Any) -> Any:
        """Returns the posted text unchanged, so the form shows the text again even if it is invalid."""
        return initial if self.disabled else data

    def has_changed(self, initial: Any, data: Any) -> bool:
        """Whether the two values differ. Spaces and the order of names are ignored."""
        try:
            # JSON text is compared, because Python treats `True` and `1` as equal.
            return json.dumps(initial or {}, sort_keys=True) != json.dumps(self.to_python(data), sort_keys=True)
        except ValidationError:
            return True

    def _error(self, code: str, **params: Any) -> ValidationError:
        return ValidationError(self.error_messages[code], code=code, params=params)

    def _loads(self, text: str) -> Any:
        try:
            return json.loads(
                text, object_pairs_hook=self._pairs, parse_constant=self._constant, parse_float=self._float
            )
        except json.JSONDecodeError as error:
            raise self._invalid(text, error) from None
        except RecursionError:
            raise self._error("deep") from None
        except ValueError:
            # Python refuses to convert numbers with thousands of digits.
            raise self._error("number_size") from None

    def _invalid(self, text: str, error: json.JSONDecodeError) -> ValidationError:
        line, column = error.lineno, error.colno
        near = text.splitlines()[line - 1][max(column - 11, 0) : column + 10].strip()
        what = json_fault(error)
        place = quoted(visible_text(near)) if near else str(_("the end"))
        return self._error("invalid", what=what, line=line, column=column, near=place)

    def _pairs(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, value in pairs:
            if name in found:
                # Without this refusal, the json module would silently keep the last value.
                raise self._error("twice", name=quoted(visible_text(name, 60)))
            found[name] = value
        return found

    def _float(self, text: str) -> float:
        value = float(text)
        if not math.isfinite(value):
            raise self._error("number", name=str(value))  # Python reads 1e999 as infinity
        return value

    def _constant(self, name: str) -> Any:
        raise self._error("number", name=name)


JSON_LIMIT = 20_000


def params_block(params: object, nothing: str) -> SafeString:
    """Stored parameters in HTML: as JSON, or the sentence `nothing` if there are none."""
    return format_html('<p class="sch-quiet">{}</p>', nothing) if params == {} else json_block(params)


def json_block(value: object) -> SafeString:
    """A value as indented JSON in HTML. The JSON is cut after JSON_LIMIT characters."""
    return format_html('<pre class="sch-code" tabindex="0">{}</pre>', visible_text(pretty(value), JSON_LIMIT))
