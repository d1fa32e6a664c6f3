"""A sentence that rows store: it is made in English, known again in a stored text, and given in the reader's language.

A sentence is a template with named arguments. An argument with a kind has a bounded form, such as a number. All others
are free text. A stored text is cut into the pieces of the template from left to right, so that each attempt takes time
in proportion to the length of the text, whatever the text is.
"""

from __future__ import annotations

import re
from bisect import insort
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from scheduling.core.words import gettext

_ARGUMENT = re.compile(r"%\((\w+)\)s")
_ERROR_CLASS = re.compile(r"[A-Za-z_][A-Za-z0-9_.]{0,199}: ")

Said = Callable[[str, int], str | None]
"""Gives an argument in the present language; None if the text is no such argument. The number is how many sentences may
still stand within each other."""


@dataclass(frozen=True)
class Kind:
    """What an argument may be.

    Args:
        pattern: a regular expression without groups that match it; empty for free text.
        width: the length of the longest match.
        phrases: the phrases that it may be.
    """

    pattern: str = ""
    width: int = 0
    said: Said = lambda text, _depth: text
    phrases: tuple[StoredSentence, ...] = ()


TEXT = Kind()
NUMBER = Kind(r"-?[0-9][0-9,]{0,24}", 26)
DECIMAL = Kind(r"-?[0-9][0-9.]{0,20}(?:e[+-][0-9]{1,3})?", 27)
CLOCK = Kind(r"[0-9]{2}:[0-9]{2}:[0-9]{2}", 8)
_ZONE = r"(?: (?:[A-Z]{2,10}(?:[+-][0-9]{2}:[0-9]{2})?|[+-][0-9]{2,6}|None))?"
_CLOCK = r"[0-9]{2}:[0-9]{2}(?::[0-9]{2})?"
_DATE = r"[0-9]{1,4}-[0-9]{2}-[0-9]{2}"
TIME = Kind(f"{_DATE} {_CLOCK}{_ZONE}", 37)
"""A date and a time, perhaps with the name of the zone."""
END = Kind(f"(?:{_DATE} )?{_CLOCK}{_ZONE}", 37)
"""The end of a span of time. The date may be missing, if it is the one of the beginning."""
WORD = Kind(r"[^\s:;,.]{1,80}", 80)

MOST_NESTED = 4
"""So many sentences may stand within each other. What stands further inside stays as it is."""

_known: list[StoredSentence] = []
"""All sentences that have been defined, those with the most characters of their own first."""


class _Cuts(NamedTuple):
    """The patterns of the characters between the arguments that are free text.

    Args:
        last_width: the length of the longest match of the last one.
    """

    first: re.Pattern[str]
    between: list[re.Pattern[str]]
    last: re.Pattern[str]
    last_width: int


class StoredSentence:
    """A sentence that rows store.

    Args:
        template: the English sentence. An argument is written as `%(name)s`.
        kinds: the kinds of the arguments that are no free text. Between two arguments that are not both bounded, the
            template has other characters.
    """

    def __init__(self, template: str, **kinds: Kind) -> None:
        self.template = template
        parts = _ARGUMENT.split(template)
        self.names = tuple(parts[1::2])
        self.kinds = {name: kinds.get(name, TEXT) for name in self.names}
        self._free = tuple(name for name in self.names if not self.kinds[name].pattern)
        self.begins = parts[0]
        """The characters with which each such sentence begins."""
        self.weight = len("".join(parts[::2]))
        """How many characters no argument has. Of two sentences that fit, the one with more of them is meant."""
        self._register()

    def _register(self) -> None:
        insort(_known, self, key=lambda one: -one.weight)

    @cached_property
    def _cuts(self) -> _Cuts:
        """Made when the first text is looked at: hundreds of patterns would delay the start of each process."""
        parts = _ARGUMENT.split(self.template)
        pieces, last_width = [re.escape(parts[0])], len(parts[0])
        for name, literal in zip(self.names, parts[2::2], strict=True):
            if pattern := self.kinds[name].pattern:
                pieces[-1] += f"(?P<{name}>{pattern}){re.escape(literal)}"
                last_width += self.kinds[name].width + len(literal)
            else:
                pieces.append(re.escape(literal))
                last_width = len(literal)
        between = [re.compile(piece) for piece in pieces[1:-1]]
        return _Cuts(re.compile(pieces[0]), between, re.compile(pieces[-1] + r"\Z"), last_width)

    def format(self, **values: object) -> str:
        """The sentence in English, as rows store it."""
        return self.template % values

    def arguments(self, text: str) -> Mapping[str, str] | None:
        """The arguments with which the text was made; None if it is no such sentence."""
        cuts = self._cuts
        if not self._free:
            whole = cuts.last.match(text)
            return None if whole is None else whole.groupdict()
        first = cuts.first.match(text)
        if first is None:
            return None
        last = cuts.last.search(text, max(first.end(), len(text) - cuts.last_width))
        if last is None:
            return None
        found, at = first.groupdict() | last.groupdict(), first.end()
        for name, between in zip(self._free, cuts.between, strict=False):
            following = between.search(text, at, last.start())
            if following is None:
                return None
            found |= following.groupdict() | {name: text[at : following.start()]}
            at = following.end()
        return found | {self._free[-1]: text[at : last.start()]}

    def in_language(self, text: str, depth: int = 0) -> str | None:
        """The text in the present language; None if it is no such sentence."""
        found = self.arguments(text)
        if found is None:
            return None
        said: dict[str, str] = {}
        for name, value in found.items():
            argument = self.kinds[name].said(value, depth)
            if argument is None:
                return None
            said[name] = argument
        return gettext(self.template) % said

    @property
    def pattern(self) -> str:
        """A regular expression without groups for this sentence, if no argument of it is free text; otherwise empty."""
        if self._free:
            return ""
        parts = _ARGUMENT.split(self.template)
        found = [re.escape(parts[0])]
        for name, literal in zip(self.names, parts[2::2], strict=True):
            found.append(f"(?:{self.kinds[name].pattern}){re.escape(literal)}")
        return "".join(found)

    @property
    def width(self) -> int:
        """The length of the longest such sentence without free text."""
        return self.weight + sum(kind.width for kind in self.kinds.values())


class StoredPhrase(StoredSentence):
    """A part of stored sentences, which stands in no row alone."""

    def _register(self) -> None:
        pass


def defined() -> tuple[StoredSentence, ...]:
    """All sentences that have been defined so far, without the phrases."""
    return tuple(_known)


def told(text: str, depth: int = 0) -> str | None:
    """The text in the present language; None if no defined sentence is like it.

    The class of an error may stand before the sentence.
    """
    fit = (one.in_language(text, depth) for one in _known if text.startswith(one.begins))
    found = next((each for each in fit if each is not None), None)
    if found is None and depth < MOST_NESTED and (named := _ERROR_CLASS.match(text)) is not None:
        inner = told(text[named.end() :], depth + 1)
        return None if inner is None else named[0] + inner
    return found


def _nested(text: str, depth: int) -> str:
    """A sentence within another one, perhaps without its full stop."""
    if depth >= MOST_NESTED:
        return text
    found = told(text, depth + 1)
    if found is None and (found := told(f"{text}.", depth + 1)) is not None:
        found = found.removesuffix(".")
    return text if found is None else found


SENTENCE = Kind("", 0, _nested)
"""Another sentence, with or without its full stop, or any other text."""


def one_of(*phrases: StoredSentence) -> Kind:
    """An argument that is one of these phrases."""

    def said(text: str, depth: int) -> str | None:
        found = (phrase.in_language(text, depth) for phrase in phrases)
        return next((each for each in found if each is not None), None)

    patterns = [phrase.pattern for phrase in phrases]
    if not all(patterns):
        return Kind("", 0, said, phrases)
    return Kind(f"(?:{'|'.join(patterns)})", max(phrase.width for phrase in phrases), said, phrases)


def or_text(*phrases: StoredSentence) -> Kind:
    """An argument that is one of these phrases, or any other text."""
    known = one_of(*phrases)
    return Kind("", 0, lambda text, depth: text if (found := known.said(text, depth)) is None else found, phrases)
