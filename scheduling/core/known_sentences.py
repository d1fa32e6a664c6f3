"""Gives stored sentences in the language of the reader. It knows all sentences that this software stores in rows."""

from __future__ import annotations

from scheduling.core import (
    after_sentences,
    delivery_sentences,
    inbox_sentences,
    run_sentences,
    skip_sentences,
    wait_sentences,
)
from scheduling.core.stored_sentence import told
from scheduling.core.text import visible_text
from scheduling.core.words import CATALOGUES, language

MODULES = (after_sentences, delivery_sentences, inbox_sentences, run_sentences, skip_sentences, wait_sentences)
"""The modules that define the sentences."""


def in_language(text: str) -> str:
    """A text of a row in the present language. A text that is none of our sentences stays as it is.

    Rows, logs and the HTTP API have the English sentence. Call this function where a page or a letter shows it, before
    the text is cut.
    """
    if not isinstance(text, str) or language() not in CATALOGUES:  # plain SQL can write any value
        return text
    found = told(text)
    return text if found is None else found


def for_reader(text: str, limit: int | None = None) -> str:
    """A text of a row in the present language, as `core.text.visible_text` shows it, cut to `limit` characters."""
    return visible_text(in_language(text), limit)
