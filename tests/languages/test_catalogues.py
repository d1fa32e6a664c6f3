"""Each catalogue has each sentence of the code, with a translation that fits."""

from __future__ import annotations

import io
import re
from collections import Counter
from pathlib import Path

import django
import pytest
from babel.messages.catalog import Catalog, Message
from babel.messages.mofile import read_mo
from babel.messages.pofile import read_po

from tests.languages.catalogue import LANGUAGES, catalogue_file, compiled, extracted, stored

DJANGO = Path(django.__file__).parent
PLACEHOLDER = re.compile(r"%(\(\w+\))?[sd]")
NAME = re.compile(r"\{[a-z]+\}")
TAG = re.compile(r"</?[a-z]+[^>]*>")


@pytest.fixture(scope="module")
def code() -> Catalog:
    return extracted()


@pytest.fixture(scope="module", params=LANGUAGES)
def language(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def names(catalogue: Catalog) -> set[tuple[str | None, str]]:
    return {(message.context, key_of(message)) for message in catalogue if message.id}


def key_of(message: Message) -> str:
    return message.id[0] if isinstance(message.id, tuple | list) else message.id


def texts(value: str | tuple[str, ...] | None) -> tuple[str, ...]:
    return value if isinstance(value, tuple) else (value or "",)


def test_the_catalogue_has_the_sentences_of_the_code(code: Catalog, language: str) -> None:
    assert len(names(code)) > 2_000
    assert names(stored(language)) == names(code), "run `make messages`"


def test_each_sentence_has_a_translation(language: str) -> None:
    catalogue = stored(language)
    assert [key_of(message) for message in catalogue if message.id and not all(texts(message.string))] == []
    assert [key_of(message) for message in catalogue if message.id and message.fuzzy] == []


def test_each_translation_has_the_placeholders_and_tags_of_its_sentence(language: str) -> None:
    wrong = []
    for message in stored(language):
        if not message.id:
            continue
        if PLACEHOLDER.search(texts(message.id)[-1]):  # Babel takes "95 % of" for a placeholder
            wrong += [f"{key_of(message)}: {error}" for error in message.check()]
        source, said = texts(message.id)[-1], texts(message.string)[-1]
        if {*NAME.findall(source)} != {*NAME.findall(said)}:
            wrong.append(f"{key_of(message)}: other names in braces")
        if Counter(TAG.findall(source)) != Counter(TAG.findall(said)):
            wrong.append(f"{key_of(message)}: other tags")
    assert wrong == []


def test_each_translation_has_the_ends_of_its_sentence(language: str) -> None:
    """A full stop, a colon, and spaces: pages put parts together."""
    wrong = []
    for message in stored(language):
        for source, said in zip(texts(message.id)[-1:], texts(message.string)[-1:], strict=True):
            if source and (_ends(source) != _ends(said)):
                wrong.append(f"{source!r}: {said!r}")
    assert wrong == []


def _ends(text: str) -> tuple[bool, bool, bool, bool]:
    return text[:1].isspace(), text[-1:].isspace(), text.rstrip()[-1:] == ":", text.rstrip()[-1:] == "."


def test_the_compiled_file_is_made_from_the_catalogue(language: str) -> None:
    def said(file: bytes) -> dict[str, str]:
        # The header names the version of Babel.
        return {f"{one.context} {one.id}": str(one.string) for one in read_mo(io.BytesIO(file)) if one.id}

    found = catalogue_file(language).with_suffix(".mo").read_bytes()
    assert len(said(found)) > 2_000
    assert said(found) == said(compiled(stored(language))), "run `make messages`"


def test_a_sentence_that_django_has_is_translated_as_django_does(language: str) -> None:
    """The catalogue of a package wins over Django's, also on the pages of the project around it."""
    ours = {(message.context, key_of(message)): message.string for message in stored(language) if message.id}
    compared = 0
    for part in ("conf", "contrib/admin", "contrib/auth"):
        with (DJANGO / part / f"locale/{language}/LC_MESSAGES/django.po").open("rb") as file:
            for message in read_po(file):
                if (said := ours.get((message.context, key_of(message)))) is not None and message.id:
                    compared += 1
                    assert set(texts(said)) <= set(texts(message.string)), key_of(message)
    assert compared > 10
