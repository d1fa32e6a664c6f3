"""The base class of admin pages that show rows. It makes texts safe to show, and adds the edits to the history page."""

from __future__ import annotations

from typing import Any

from django.contrib.admin.models import LogEntry
from django.contrib.admin.views.main import PAGE_VAR
from django.db import models
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.text import capfirst
from django.utils.translation import gettext as _

from scheduling.admin.common.deleted_rows import without_links
from scheduling.admin.common.pages import Pages
from scheduling.admin.ui.media import MEDIA
from scheduling.core.history_sentences import entry_in_language
from scheduling.core.text import visible_text
from scheduling.models import Scheduler
from scheduling.operations.audit import read
from scheduling.operations.params_diff import Change

PAGE_MAX_CHARS = 20_000
"""Each value on a page is cut after this many characters."""


SECRETS = frozenset({"params", "ping_url"})
"""Columns that may hold a secret."""


class SafePages(Pages):
    """Replaces control characters by visible signs in the read-only texts of a row's page.

    In lists, `safe_text.column` replaces the control characters.
    """

    object_history_template = "admin/scheduling/object_history.html"
    no_rows: Any = ""
    """What the list says while there is nothing to list: what the rows are for, in a line."""

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Says in the heading what is listed. Django's heading asks to select a row."""
        title = capfirst(self.opts.verbose_name_plural)
        return super().changelist_view(request, {"title": title, **(extra_context or {})})

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        """Refuses to filter a list by parameters and by addresses that are secrets.

        Django lets the query string of a URL filter a list by any column. With a filter on params, a user who may only
        view the list could find out a secret, one character at a time.
        """
        return not SECRETS & set(lookup.split("__")) and super().lookup_allowed(lookup, value, request)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> tuple[Any, Any, Any, Any]:
        """What a deletion removes, and what forbids it."""
        deleted, counts, lacking, protected = super().get_deleted_objects(objs, request)
        return *without_links(deleted, counts), lacking, protected

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any) -> HttpResponse:
        """Replaces control characters in the row's texts just before rendering. The form keeps the original values."""
        response = super().render_change_form(request, context, *args, **kwargs)
        row = context["adminform"].form.instance
        if row.pk is not None and "title" in context:
            # Django's headings are "Change schedule", or "View schedule" for a user who may not change it.
            kind = {"kind": capfirst(self.opts.verbose_name), "name": visible_text(row, 120)}
            context |= {"title": _("%(kind)s %(name)s") % kind, "subtitle": None}
        for field in row._meta.concrete_fields:
            if isinstance(field, (models.CharField, models.TextField)) and not field.choices:
                value = getattr(row, field.attname)
                setattr(row, field.attname, visible_text(value, PAGE_MAX_CHARS) if isinstance(value, str) else value)
        return response

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Shows the edits of each audit entry as a table, the newest entry first. Django shows the oldest first."""
        response = super().history_view(request, object_id, {"media": MEDIA, **(extra_context or {})})
        if isinstance(response, TemplateResponse) and response.context_data is not None:
            oldest_first = response.context_data["action_list"].paginator
            entries = oldest_first.object_list.order_by("-action_time", "-pk")
            newest_first = self.get_paginator(request, entries, oldest_first.per_page)
            response.context_data["action_list"] = newest_first.get_page(request.GET.get(PAGE_VAR, 1))
            for entry in response.context_data["action_list"]:
                entry.shown = shown_entry(entry, self.model)
        return response


def shown_entry(entry: LogEntry, model: type[models.Model]) -> dict[str, Any]:
    """The values that a page shows for an audit entry: `who`, `text` and `edits`.

    Each edit is a tuple: the field's label, the old value and the new value. Control characters are replaced in all
    texts, because users choose their own names, and other apps may write entries, too.

    Args:
        model: the Django model of the row that was edited.
    """
    text, edits = read(entry)
    full_name = getattr(entry.user, "get_full_name", str)()
    name = entry.user.get_username()
    return {
        "who": visible_text(f"{name} ({full_name})" if full_name else name, 200),
        "text": capfirst(visible_text(entry_in_language(text), PAGE_MAX_CHARS)),
        "edits": [shown_change(edit, model) for edit in edits],
    }


def shown_change(edit: Change, model: type[models.Model]) -> tuple[str, str | None, str | None]:
    """The label, the old and the new value of an edit of a row of this model, as pages show them."""
    labels = {field.name: capfirst(str(field.verbose_name)) for field in model._meta.fields}
    if model is Scheduler:
        labels["status"], edit = _("Paused"), _as_pause(edit)
    if isinstance(_field(model, edit.name), models.BooleanField):
        edit = Change(edit.name, _yes_or_no(edit.old), _yes_or_no(edit.new))
    return _label(edit.name, labels), _shown(edit.old), _shown(edit.new)


def _field(model: type[models.Model], name: str) -> models.Field[Any, Any] | None:
    return next((field for field in model._meta.fields if field.name == name), None)


def _yes_or_no(value: str | None) -> str | None:
    """Entries store “yes” and “no”."""
    return {"yes": _("yes"), "no": _("no")}.get(value, value) if value else value


def _as_pause(edit: Change) -> Change:
    """Pages say "paused" and never "active", so an edit of the column `status` is shown as its opposite."""
    opposite = {"yes": "no", "no": "yes"}
    if edit.name != "status":
        return edit
    return Change(edit.name, *(opposite.get(value, value) if value else value for value in (edit.old, edit.new)))


def _shown(value: str | None) -> str | None:
    return None if value is None else visible_text(value, PAGE_MAX_CHARS)


def _label(name: str, labels: dict[str, str]) -> str:
    column, _dot, part = name.partition(".")
    label = labels.get(column) or visible_text(column)
    return _("%(field)s: %(name)s") % {"field": label, "name": visible_text(part)} if part else label
