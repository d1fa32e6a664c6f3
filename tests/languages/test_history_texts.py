"""Entries of the history are stored in English, and shown in the language of the reader."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Permission
from django.utils import translation
from hypothesis import given
from hypothesis import strategies as st

from scheduling.admin.tokens.permission_words import permission_words
from scheduling.core import history_sentences
from scheduling.core.history_sentences import entry_in_language, selection_in_language
from scheduling.core.stored_sentence import StoredPhrase
from scheduling.models.edited import has_use
from tests.languages.stored_arguments import made
from tests.support import examples

ENTRIES = history_sentences.ENTRY.phrases


def german(text: str) -> str:
    with translation.override("de"):
        return entry_in_language(text)


@pytest.mark.parametrize("phrase", ENTRIES, ids=lambda one: one.template)
@examples(24)
@given(data=st.data())
def test_each_entry_is_known(phrase: StoredPhrase, data: st.DataObject) -> None:
    text, _values = data.draw(made(phrase))
    assert german(text) != text
    assert german(f"{text} (token “deploy”)") == f"{german(text)} (Token „deploy“)"
    assert german(f"{text} (command)") == f"{german(text)} (Befehl)"


def test_what_a_program_has_done_without_further_words() -> None:
    assert (german("token “deploy”"), german("command")) == ("Token „deploy“", "Befehl")


@pytest.mark.parametrize("text", ["", "Added.", "canceled", "run now and then", "the warehouse is closed", "%(text)s"])
def test_texts_of_other_apps_stay(text: str) -> None:
    assert german(text) == text


@examples(300)
@given(st.text() | st.text("acdeklnoprstu: %(){}\n\u202e1234567890“”"))
def test_no_text_breaks_a_page(text: str) -> None:
    german(text)
    with translation.override("de"):
        selection_in_language(text)


def test_a_selection_names_its_filters() -> None:
    with translation.override("de"):
        assert selection_in_language("all failures with error_class=KeyError") == (
            "alle Fehlschläge mit error_class=KeyError"
        )


@pytest.mark.django_db
def test_each_permission_has_german_words() -> None:
    rows = Permission.objects.filter(content_type__app_label__in=("scheduling", "cron_reports"))
    used = [row for row in rows.select_related("content_type") if has_use(row.codename, row.content_type.model)]
    assert len(used) > 30
    with translation.override("de"):
        assert [row.name for row in used if permission_words(row).startswith("Can ")] == []
        assert "Zeitplan ändern" in {permission_words(row) for row in used}


@pytest.mark.django_db
def test_a_permission_without_a_name_is_shown_by_its_code() -> None:
    row = Permission.objects.get(codename="run_scheduler")
    row.name = ""
    with translation.override("de"):
        assert permission_words(row) == "run_scheduler"
