"""Legible: what a page shows of a row beside its form's fields is fit to be looked at, whatever has been stored."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db import models
from django.http import HttpRequest, HttpResponse
from django.utils.text import capfirst

from scheduling.core.text import shown

CELL = 160
PAGE = 20_000
"""Characters of one value, in a list and on a page."""


class Legible(admin.ModelAdmin):
    """Columns of text that are shown as they are stored, and fields that are only to be read."""

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any) -> HttpResponse:
        """The row is about to be drawn and nothing else: the form has its own values already."""
        response = super().render_change_form(request, context, *args, **kwargs)
        row = context["adminform"].form.instance
        for field in row._meta.concrete_fields:
            if isinstance(field, (models.CharField, models.TextField)) and not field.choices:
                value = getattr(row, field.attname)
                setattr(row, field.attname, shown(value, PAGE) if isinstance(value, str) else value)
        return response


def column(model: type[models.Model], name: str) -> Any:
    """A list's column of text, cut and without what hides or reorders."""

    field = model._meta.get_field(name)
    assert isinstance(field, models.Field)  # noqa: S101 - a column of the model's own

    @admin.display(description=capfirst(str(field.verbose_name)), ordering=name)
    def cell(row: Any) -> str:
        return shown(getattr(row, name), CELL)

    cell.__name__ = name  # the style sheets' class of the cell
    return cell
