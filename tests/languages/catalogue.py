"""Reads the sentences that are marked for translation, and writes the catalogues of the languages.

`python -m tests.languages.catalogue` (or `make messages`) takes new sentences into each catalogue, and removes those
that no longer exist. A person then writes their translations into `scheduling/locale/<language>/LC_MESSAGES/django.po`,
and runs the command once more: it makes the compiled file beside it, which Django reads. Babel does both, so that GNU
gettext need not be installed.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from babel.messages.catalog import Catalog
from babel.messages.extract import DEFAULT_KEYWORDS, extract
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po
from django.utils.translation.template import templatize

from scheduling.core.words import CATALOGUES

ROOT = Path(__file__).parents[2]
LOCALE = ROOT / "scheduling" / "locale"
PACKAGES = ("scheduling", "reports", "cronsite")
LANGUAGES = tuple(sorted(CATALOGUES))

LAZY = {f"{name}_lazy": DEFAULT_KEYWORDS[name] for name in ("gettext", "ngettext", "pgettext", "npgettext")}
STORED = {"StoredSentence": None, "StoredPhrase": None}
"""They mark the sentences that rows store (`core.stored_sentence`)."""

_ALIAS = re.compile(r"\b(\w+) as (\w+)")

KEYWORDS: dict[str, Any] = {**DEFAULT_KEYWORDS, **LAZY, "gettext_noop": None, **STORED}


def extracted() -> Catalog:
    """All sentences of the packages and of the templates, each with the files that have it."""
    catalogue = Catalog()
    for path in _files():
        text = path.read_text()
        if path.suffix == ".html" or path.suffix == ".txt":
            # Babel reads the result as Python, in which an indentation has a meaning.
            text = "\n".join(line.lstrip() for line in templatize(text, origin=str(path)).splitlines())
        source, keywords = io.BytesIO(text.encode()), KEYWORDS | _aliases(text)
        for line, message, _comments, context in extract("python", source, keywords=keywords):
            if message and message != ("", ""):
                catalogue.add(message, locations=[(str(path.relative_to(ROOT)), line)], context=context)
    return catalogue


def _aliases(text: str) -> dict[str, Any]:
    """The keywords that a module has under another name: `from django.utils.translation import gettext as _t`."""
    return {alias: KEYWORDS[name] for name, alias in _ALIAS.findall(text) if name in KEYWORDS}


def catalogue_file(language: str) -> Path:
    """The file with the translations, for people."""
    return LOCALE / language / "LC_MESSAGES" / "django.po"


def stored(language: str) -> Catalog:
    """The translations."""
    with catalogue_file(language).open("rb") as file:
        return read_po(file, locale=language)


def compiled(catalogue: Catalog) -> bytes:
    """The file that Django reads. A sentence without a translation is left out."""
    file = io.BytesIO()
    write_mo(file, catalogue)
    return file.getvalue()


def update(language: str) -> Catalog:
    """Take the sentences of the code into a catalogue, and write it and its compiled form."""
    path = catalogue_file(language)
    catalogue = stored(language) if path.exists() else Catalog(language)
    catalogue.update(extracted(), no_fuzzy_matching=True, update_creation_date=False)
    catalogue.obsolete.clear()
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        write_po(file, catalogue, width=110, omit_header=False, include_lineno=False, sort_by_file=True)
    path.with_suffix(".mo").write_bytes(compiled(catalogue))
    return catalogue


def _files() -> Iterator[Path]:
    for package in PACKAGES:
        yield from sorted((ROOT / package).rglob("*.py"))
    for suffix in ("html", "txt"):
        yield from sorted((ROOT / "templates").rglob(f"*.{suffix}"))


def main() -> None:
    """Update all catalogues, and say what is not translated yet."""
    for language in LANGUAGES:
        catalogue = update(language)
        missing = [message for message in catalogue if message.id and not _is_translated(message.string)]
        print(f"{language}: {len(catalogue)} sentences, {len(missing)} without a translation")  # noqa: T201


def _is_translated(string: str | tuple[str, ...]) -> bool:
    return all(string) if isinstance(string, tuple) else bool(string)


if __name__ == "__main__":
    main()
