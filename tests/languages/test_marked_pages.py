"""No page has a sentence that is not marked for translation.

Each marked sentence is put into brackets. What stands outside of brackets is a value of a row, a name, or a fault.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bs4 import BeautifulSoup, Comment
from django.apps import apps
from django.utils import translation
from django.utils.translation import trans_real

from scheduling.handlers import registry
from tests.admin.addresses import every_address
from tests.admin.conftest import logged_in
from tests.admin.rows import one_of_each
from tests.admin.walk import text_of, undone
from tests.factories import UserFactory
from tests.server_share import shared_pages

pytestmark = [pytest.mark.slow, pytest.mark.django_db]

BRACKETS = re.compile(r"⟦[^⟦⟧]*⟧")
WORDS = re.compile(r"[A-Za-z]{2,}(?:[ ,;:.'-]+[A-Za-z]{2,})+")
ATTRIBUTES = ("title", "aria-label", "alt", "placeholder")

NAMES = (
    "jan-dec", "on fri at",  # examples of expressions
    "example.com", "cron-test", "tests.noop cron-test", "tests.typed cron-test", "reminder send", "Healthchecks",
)  # fmt: skip
"""Words outside of sentences that no language changes."""


@pytest.fixture
def brackets(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Put each translated text into brackets. In the end, check that each of them is in the German catalogue, too."""
    asked: set[Any] = set()
    for name in ("gettext", "ngettext", "pgettext", "npgettext"):
        getattr(translation, name)  # Django chooses its function at the first use
        known = getattr(translation._trans, name)  # type: ignore[attr-defined]

        def in_brackets(*args: Any, name: str = name, known: Any = known) -> str:
            text = f"{args[0]}\x04{args[1]}" if "pgettext" in name else args[0]
            asked.add((text, 1) if name.startswith("n") else text)
            return f"⟦{known(*args)}⟧"

        monkeypatch.setattr(translation._trans, name, in_brackets)  # type: ignore[attr-defined]
    with translation.override("en"):  # the language of a request stays when it is over
        yield
    german = trans_real.translation("de")._catalog  # type: ignore[attr-defined]
    assert sorted(str(text) for text in asked - {""} if text not in german) == []


def outside(page: str) -> Iterator[str]:
    """The words of a page that stand outside of brackets, two or more together."""
    soup = BeautifulSoup(page, "html.parser")
    for tag in soup.find_all(["script", "style", "code", "pre", "textarea"]):
        tag.decompose()
    for comment in soup.find_all(string=lambda text: isinstance(text, Comment)):
        comment.extract()
    texts = [soup.get_text("\n")]  # a sentence may have tags in it
    texts += [tag[name] for tag in soup.find_all(True) for name in ATTRIBUTES if isinstance(tag.get(name), str)]
    for text in texts:
        before = ""
        while before != text:
            before, text = text, BRACKETS.sub(" | ", text)
        yield from WORDS.findall(text)


def values() -> str:
    """All texts of all rows, and what handlers say of themselves."""
    models = [model for model in apps.get_models() if model._meta.managed]
    stored = [row for model in models for row in model._base_manager.values()]
    found = [str(value) for row in stored for value in row.values()]
    found += [
        f"{handler.title} {handler.description} {inspect.getdoc(handler.call)}" for handler in registry.handlers()
    ]
    return " ".join(" ".join(found).split())


@pytest.mark.usefixtures("brackets")
def test_each_sentence_of_each_page_is_marked(settings: Any, tmp_path: Path) -> None:
    settings.MEDIA_ROOT = tmp_path
    rows = one_of_each()
    client = logged_in(UserFactory(username="editor", superuser=True))
    found: dict[str, set[str]] = {}
    addresses = [address for address in every_address(rows) if address.own]
    for address in shared_pages(addresses, lambda one: one.name):
        with undone():
            response = client.get(address.path, HTTP_ACCEPT_LANGUAGE="de")
            page = text_of(response)
        if response["Content-Type"].startswith("text/html"):
            assert "<html" not in page or 'lang="de"' in page
            for text in outside(page):
                found.setdefault(text, set()).add(address.path)
    known = " ".join([values(), *NAMES])
    wrong = [f"{text!r}: {min(paths)}" for text, paths in sorted(found.items()) if not is_known(text, known)]
    assert not wrong, "\n".join(wrong)


def is_known(text: str, known: str) -> bool:
    """Whether rows and handlers have each part of a text. A page may put several values together."""
    parts = re.split(r"[:;] |\n", re.sub(r"^(worker|report|reminder|key|Report) ", "", text.strip()))
    return all(" ".join(part.split()) in known for part in parts)
