"""Reads what a user types into a search box: plain words, and qualifiers such as `schedule:orders`."""

from __future__ import annotations

import re
from dataclasses import dataclass

_NAME = re.compile(r"[A-Za-z_]+")
_QUOTE = '"'


@dataclass(frozen=True)
class Qualifier:
    """A part `name:value` of a search.

    Args:
        name: in lower case.
        value: without the quotes around it; never empty.
        written: the part as the user typed it.
    """

    name: str
    value: str
    written: str


@dataclass(frozen=True)
class Search:
    """A search that was read.

    Args:
        words: the text outside of the qualifiers, with spaces removed at its ends. Empty if there is none.
        qualifiers: in the order of the text.
    """

    words: str
    qualifiers: tuple[Qualifier, ...] = ()


def read_search(text: str) -> Search:
    """Read a search. Every text can be read.

    - A qualifier is a word of ASCII letters at the beginning or after a space, a colon, and a value right behind it.
      The value ends at the next space. A value with spaces stands in double quotes.
    - Everything else is plain text: `08:15`, `KeyError: name` and `https://host` are no qualifiers.
    - Text that begins with a double quote, up to the next one, is plain text, too. So `"state:failed"` finds the text.
    - A double quote without a second one belongs to the text.
    """
    words: list[str] = []
    found: list[Qualifier] = []
    place = 0
    while place < len(text):
        qualifier = _qualifier(text, place)
        if qualifier is not None:
            found.append(qualifier)
            place += len(qualifier.written)
            continue
        end = _end_of_word(text, place)
        words.append(text[place:end])
        place = end
    return Search(_unquoted("".join(words).strip()), tuple(found))


def quoted(value: str) -> str:
    """The value in the form in which a qualifier has it: in double quotes if it has a space or begins with a quote."""
    plain = value and not value.startswith(_QUOTE) and not any(sign.isspace() for sign in value)
    return value if plain else f"{_QUOTE}{value}{_QUOTE}"


def _qualifier(text: str, place: int) -> Qualifier | None:
    """The qualifier that begins at `place`; None if there is none."""
    name = _NAME.match(text, place)
    if name is None or text[name.end() : name.end() + 1] != ":":
        return None
    start = name.end() + 1
    if text.startswith(_QUOTE, start) and (close := text.find(_QUOTE, start + 1)) >= 0:
        value, end = text[start + 1 : close], close + 1
    else:
        end = _next_space(text, start)
        value = text[start:end]
    if not value.strip() or value.startswith(("//", ":")):  # an address such as https://host, or a name such as a::b
        return None
    return Qualifier(name[0].lower(), value.strip(), text[place:end])


def _end_of_word(text: str, place: int) -> int:
    """The end of the plain text that begins at `place`: after the closing quote or the next spaces."""
    if text.startswith(_QUOTE, place) and (close := text.find(_QUOTE, place + 1)) >= 0:
        return close + 1
    end = _next_space(text, place)
    while end < len(text) and text[end].isspace():
        end += 1
    return end


def _next_space(text: str, place: int) -> int:
    while place < len(text) and not text[place].isspace():
        place += 1
    return place


def _unquoted(words: str) -> str:
    inside = words[1:-1]
    whole = len(words) > 2 and words[0] == words[-1] == _QUOTE and _QUOTE not in inside
    return inside.strip() if whole else words
