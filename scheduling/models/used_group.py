"""Refuses to delete a group that a row still has. Without its group, the row would be seen by everyone."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.db.models import QuerySet, RestrictedError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy


class UseOfGroup:
    """What Django's page "Delete" lists instead of the rows that have the group.

    The user of this page may delete groups. That is no permission to see the names of schedules and executions.
    """

    def __init__(self, model: type[models.Model]) -> None:
        self._meta = _Meta(model)

    def __str__(self) -> str:
        return _("some of them have this group. Without it, everyone would see them.")


class _Meta:
    def __init__(self, model: type[models.Model]) -> None:
        self.verbose_name = model._meta.verbose_name_plural


def refuse_used_group(collector: Any, field: models.Field, rows: QuerySet[Any], using: str) -> None:
    """`on_delete` of a group. It reads one row only, because millions of executions may have the group.

    Raises:
        RestrictedError: a row has the group. The text says what to do.
    """
    if rows.using(using).order_by().exists():
        model = field.model
        said = _(
            "A group that is in use cannot be deleted, because everyone would then see what belongs to it. Give its "
            "schedules another group. Its executions keep it until retention removes them. Still in use by: %(rows)s."
        )
        # A RestrictedError keeps its own text. Django replaces the text of a ProtectedError.
        raise RestrictedError(said % {"rows": model._meta.verbose_name_plural}, {UseOfGroup(model)})  # type: ignore[arg-type]


refuse_used_group.lazy_sub_objs = True  # type: ignore[attr-defined]  # Django would otherwise load all rows


def group_column(**options: Any) -> models.ForeignKey:
    """The column of a row that belongs to a group of users (`models.visibility`). NULL: it belongs to no group."""
    own: dict[str, Any] = {"null": True, "blank": True, "related_name": "+", "verbose_name": gettext_lazy("user group")}
    return models.ForeignKey("auth.Group", refuse_used_group, **own, **options)
