"""Answers a request whose page cannot be shown because plain SQL has written a value that Python cannot use.

The page then names the table, the column and the row, so that an operator can mend the value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from itertools import islice
from typing import Any, NamedTuple

from django.apps import apps
from django.contrib.admin import AdminSite, ModelAdmin
from django.core.exceptions import PermissionDenied, SuspiciousOperation
from django.db import connection, models
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponseBase
from django.template.response import SimpleTemplateResponse, TemplateResponse
from django.utils.translation import gettext as _

from scheduling.core.targets import TARGET_KINDS
from scheduling.core.text import visible_text
from scheduling.handlers.targets import target_model
from scheduling.logs import get_logger
from scheduling.models import RefusedRow, Replay, ReplayChunk, ReplayGroup, ScheduleRevision
from scheduling.models.visibility import Visibility, visibility_of
from scheduling.processes.database import is_away
from scheduling.processes.unusable_values import problem, read, unusable_columns

log = get_logger(__name__)

View = Callable[..., HttpResponseBase]

ROWS_PER_TABLE, ROWS_PER_QUERY, MOST_NAMED = 2_000, 100, 20
"""Only the newest rows of each table are searched, and only the first values are named."""

CONFLICT = 409


class Unusable(NamedTuple):
    """A stored value that cannot be used. `problem` is the second part of a sentence."""

    model: type[models.Model]
    column: str
    key: Any
    problem: str

    @property
    def table(self) -> str:
        """The name of the table."""
        return self.model._meta.db_table

    @property
    def statement(self) -> str:
        """The SQL statement that mends the value."""
        quote = connection.ops.quote_name
        row = visible_text(self.key, 40)
        return f"UPDATE {quote(self.table)} SET {quote(self.column)} = … WHERE id = {row}"  # noqa: S608 - only shown


def explained(admin: ModelAdmin, view: View) -> View:
    """A view that names the unusable values if `view` or the rendering of its response fails because of them."""

    @wraps(view)
    def inner(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        try:
            response = view(request, *args, **kwargs)
        except Exception as error:
            return _explanation(admin, request, error)
        if isinstance(response, SimpleTemplateResponse) and not response.is_rendered:
            render = response.render

            def rendered() -> Any:
                try:
                    return render()
                except Exception as error:
                    return _explanation(admin, request, error).render()

            response.render = rendered  # type: ignore[method-assign]
        return response

    return inner


def _explanation(admin: ModelAdmin, request: HttpRequest, error: Exception) -> TemplateResponse:
    """The page that names the unusable values. If there are none, the error is raised again."""
    user = getattr(request, "user", None)
    if request.method not in ("GET", "HEAD") or user is None or not user.is_staff or is_away_or_ours(error):
        raise error
    found = list(islice(unusable_values(), MOST_NAMED))
    visible = visibility_of(user)
    if not found:
        raise error
    # The error may have another cause, too. So its stack trace must be in the log.
    log.warning("%s cannot be shown beside a stored value that cannot be used", request.path, exc_info=error)
    context = {
        **admin.admin_site.each_context(request),
        "title": _("This page cannot be shown"),
        "found": [
            value for value in found if _may_view(request, admin.admin_site, value.model) and _sees(visible, value)
        ],
        "subtitle": None,
    }
    return TemplateResponse(request, "admin/scheduling/unusable.html", context, status=CONFLICT)


def _may_view(request: HttpRequest, site: AdminSite, model: type[models.Model]) -> bool:
    """Whether the user may view rows of this table. Tables without pages of their own are for superusers."""
    pages = site._registry.get(model)
    return (
        pages.has_view_permission(request) if pages is not None else bool(getattr(request.user, "is_superuser", False))
    )


def _sees(visible: Visibility, value: Unusable) -> bool:
    """Whether the row belongs to no group that is hidden from the user."""
    if not visible.is_limited:
        return True
    names = {field.name for field in value.model._meta.concrete_fields}
    row: QuerySet[Any] = value.model._base_manager.filter(pk=value.key)
    if "execution" in names:
        return visible.of_executions(row).exists()
    if value.model is RefusedRow:
        return visible.refused_rows(row).exists()
    if value.model in (Replay, ReplayChunk, ReplayGroup):
        key = "pk" if value.model is Replay else "replay"
        return row.filter(**{f"{key}__in": visible.replays().order_by().values("pk")}).exists()
    if value.model is ScheduleRevision:
        return visible.schedules().filter(pk__in=row.order_by().values("schedule")).exists()
    return visible.only(row).exists() if "group" in names else True


def is_away_or_ours(error: Exception) -> bool:
    """Whether the error has nothing to do with a stored value: Django's own answers, or a database that is away."""
    return isinstance(error, Http404 | PermissionDenied | SuspiciousOperation) or is_away(error)


def unusable_values() -> Iterator[Unusable]:
    """Find values of our tables that cannot be read, or whose type the column does not have."""
    own = [*apps.get_app_config("scheduling").get_models(), *(target_model(type_) for type_ in TARGET_KINDS)]
    for model in dict.fromkeys(model for model in own if model._meta.managed and not model._meta.proxy):
        keys = list(model._base_manager.order_by("-pk").values_list("pk", flat=True)[:ROWS_PER_TABLE])
        for start in range(0, len(keys), ROWS_PER_QUERY):
            yield from _of_rows(model, keys[start : start + ROWS_PER_QUERY])


def _of_rows(model: type[models.Model], keys: list[Any]) -> Iterator[Unusable]:
    names = [field.attname for field in model._meta.concrete_fields]
    rows, error = read(model._base_manager.filter(pk__in=keys), names)
    if error is None:
        for row in rows:
            yield from _of_row(model, row)
    elif len(keys) > 1:
        half = len(keys) // 2
        yield from _of_rows(model, keys[:half])
        yield from _of_rows(model, keys[half:])
    else:
        for column, said in unusable_columns(model, keys[0]):
            yield _named(model, column, keys[0], said)


def _of_row(model: type[models.Model], row: tuple[Any, ...]) -> Iterator[Unusable]:
    fields = model._meta.concrete_fields
    key = next(value for field, value in zip(fields, row, strict=True) if field.primary_key)
    for field, value in zip(fields, row, strict=True):
        if said := problem(field, value):
            yield _named(model, str(field.column), key, said)


def _named(model: type[models.Model], column: str, key: Any, said: str) -> Unusable:
    return Unusable(model, column, key, visible_text(said, 300))
