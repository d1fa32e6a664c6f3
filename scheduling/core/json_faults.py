"""Why a text is not JSON, in the reader's language. Python's parser says it in English only."""

from __future__ import annotations

import json

from scheduling.core.words import gettext as _


def json_fault(error: json.JSONDecodeError) -> str:
    """What the parser says, as a part of a sentence: it begins with a lower-case letter and has no full stop."""
    said = {
        "Expecting value": _("a value is expected"),
        "Expecting property name enclosed in double quotes": _("a name in double quotes is expected"),
        "Expecting ':' delimiter": _("a “:” is expected"),
        "Expecting ',' delimiter": _("a “,” is expected"),
        "Illegal trailing comma before end of object": _("the comma before the end of the object is too much"),
        "Illegal trailing comma before end of array": _("the comma before the end of the list is too much"),
        "Extra data": _("there is a second value after the end"),
        "Unterminated string starting at": _("a text has no closing quotes"),
        "Invalid control character at": _("a text has a control character, such as a line end"),
        "Invalid \\escape": _("a text has a “\\” before a character that it cannot stand before"),
        "Invalid \\uXXXX escape": _("a text has “\\u” without four digits"),
    }
    found = error.msg.removesuffix(": ")
    return said.get(found) or found[:1].lower() + found[1:].rstrip(".")
