"""The language of the sentences that this folder makes.

`core/` imports no Django, so it cannot ask for the language of a request. The apps install Django's functions here at
their start. Without them, for example in a test of a rule alone, all sentences are English.

The functions have the names that `makemessages` looks for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

CATALOGUES = frozenset({"de"})
"""The languages with a catalogue of this package. In each other language, the sentences are English: Django's own
catalogue would translate single words of them, such as the weekdays."""


@dataclass
class _Installed:
    gettext: Callable[[str], str] = str
    pgettext: Callable[[str, str], str] = lambda _context, text: text
    ngettext: Callable[[str, str, int], str] = lambda one, _many, _count: one
    language: Callable[[], str] = lambda: "en"


_installed = _Installed()

_english: ContextVar[bool] = ContextVar("scheduling_english", default=False)
"""Whether `in_english` is at work."""


def install(
    gettext: Callable[[str], str],
    pgettext: Callable[[str, str], str],
    ngettext: Callable[[str, str, int], str],
    language: Callable[[], str],
) -> None:
    """Use these functions for all sentences. `language` gives the present language, such as "de" or "en-us"."""
    _installed.gettext, _installed.pgettext = gettext, pgettext
    _installed.ngettext, _installed.language = ngettext, language


def gettext(text: str) -> str:
    """The text in the present language."""
    return _installed.gettext(text) if language() in CATALOGUES else text


def pgettext(context: str, text: str) -> str:
    """The text in the present language, where it has several translations."""
    return _installed.pgettext(context, text) if language() in CATALOGUES else text


def ngettext(one: str, many: str, count: int) -> str:
    """The text for this number in the present language."""
    if language() not in CATALOGUES:
        return one if count == 1 else many
    return _installed.ngettext(one, many, count)


def quoted(text: str) -> str:
    """The text in the quotation marks of the present language."""
    return gettext("“%(text)s”") % {"text": text}


def language() -> str:
    """The code of the present language without its region, such as "de"."""
    return "en" if _english.get() else _installed.language().partition("-")[0].lower()


@contextmanager
def in_english() -> Iterator[None]:
    """The sentences of this folder are English inside: for what is stored in a row, or stands in an English text.

    It is also a decorator.
    """
    token = _english.set(True)
    try:
        yield
    finally:
        _english.reset(token)


def grouped(number: int) -> str:
    """A whole number as the present language writes it, such as "100,000"."""
    said = f"{number:,}"
    return said.replace(",", ".") if language() == "de" else said


def decimal(said: str) -> str:
    """A number as the present language writes it.

    Args:
        said: the number in digits, with a point before its decimals, such as "1.5".
    """
    return said.replace(".", ",") if language() == "de" else said
