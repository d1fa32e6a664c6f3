"""List columns for texts. Control characters and bidi characters are replaced by visible signs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import admin
from django.db import models
from django.utils.text import capfirst

from scheduling.core.known_sentences import for_reader
from scheduling.core.text import visible_text

CELL_MAX_CHARS = 160


def column(model: type[models.Model], name: str, shown: Callable[[str, int], str] = visible_text) -> Any:
    """A list column that shows the text of the field `name`, cut at `CELL_MAX_CHARS`."""

    field = model._meta.get_field(name)
    assert isinstance(field, models.Field)  # noqa: S101 - callers pass the name of a column

    @admin.display(description=capfirst(field.verbose_name), ordering=name)
    def cell(row: Any) -> str:
        return shown(getattr(row, name), CELL_MAX_CHARS)

    cell.__name__ = name  # Django puts this name into the cell's CSS class
    return cell


def sentence_column(model: type[models.Model], name: str) -> Any:
    """A list column of texts among which are sentences of our own. They are in the language of the reader."""
    return column(model, name, for_reader)
