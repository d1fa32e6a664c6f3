"""The pages of rows that belong to a group, or to all groups."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from scheduling.admin.common.own_rows import own_groups_only
from scheduling.models.visibility import visibility_of
from scheduling.operations.alert_rules import is_own


class ChangesOwnGroups(admin.ModelAdmin):
    """Rows without a group concern all groups. Users who do not see all groups change only rows of their own groups."""

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        own = obj is None or is_own(visibility_of(request.user), obj)
        return own and super().has_change_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        own = obj is None or is_own(visibility_of(request.user), obj)
        return own and super().has_delete_permission(request, obj)


class GroupedRows(ChangesOwnGroups):
    """Its form has `needs_group`: a user who does not see all groups must choose one of the own groups."""

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        form: Any = super().get_form(request, obj, change, **kwargs)
        form.needs_group = visibility_of(request.user).is_limited
        return form

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Only groups of the user can be chosen. The buttons that add, change or delete a group are left out."""
        field = super().formfield_for_dbfield(db_field, request, **kwargs)
        if field is not None and db_field.name == "group":
            own_groups_only(field, request)
            for ability in ("can_add_related", "can_change_related", "can_delete_related"):
                setattr(field.widget, ability, False)
        return field
