"""Creates the groups viewer, operator, editor and all-groups from the permissions of the installed apps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from django.contrib.auth.models import Group, Permission
from django.db import transaction

from scheduling.models.edited import EDITED, is_standard
from scheduling.models.visibility import VIEW_ALL_GROUPS
from scheduling.operations.tokens import REVOKE_ANY

VIEWER, OPERATOR, EDITOR = "viewer", "operator", "editor"
ALL_GROUPS = "all-groups"
"""The group whose members see the schedules and runs of all groups. It is no role: it allows nothing else, and no role
includes it. A member of a role and of a team's group sees what belongs to the team, and what has no group."""

ROLES = (VIEWER, OPERATOR, EDITOR)

APPS = ("scheduling", "cron_reports")
"""Labels of the apps whose permissions the groups get. An app that is not installed has no permissions."""

SPECIAL = {
    VIEW_ALL_GROUPS: ALL_GROUPS,
    "scheduling.add_apitoken": VIEWER,  # a token allows no more than its owner may do
    REVOKE_ANY: EDITOR,
}
"""The roles of permissions whose code names do not tell them."""


@dataclass(frozen=True)
class Made:
    """What `make_groups` did with one group.

    Args:
        created: whether the group is new.
        added: the permissions that were added now, as `app_label.codename`.
        lacking: the permissions that are still missing, because the group existed and was left unchanged.
    """

    name: str
    created: bool
    added: tuple[str, ...] = ()
    lacking: tuple[str, ...] = ()


def wanted(role: str) -> list[Permission]:
    """The permissions of a role. They include the permissions of the lower roles: viewer < operator < editor."""
    roles = (role,) if role == ALL_GROUPS else ROLES[: ROLES.index(role) + 1]
    found = Permission.objects.filter(content_type__app_label__in=APPS).select_related("content_type")
    return [permission for permission in found if _role_of(permission) in roles]


def make_groups(prefix: str = "", *, update: bool = False) -> Iterator[Made]:
    """Create the groups that are missing. Yields one `Made` for each of the four groups.

    Without `update`, an existing group is left unchanged, because a team may have removed permissions from the group on
    purpose. This function never removes permissions.

    Args:
        prefix: text before every group's name, for a project that already has groups with these names.
        update: whether to add missing permissions to existing groups.
    """
    for role in (*ROLES, ALL_GROUPS):
        with transaction.atomic():
            permissions = wanted(role)
            group, created = Group.objects.get_or_create(name=f"{prefix}{role}")
            has = set(group.permissions.values_list("pk", flat=True))
            missing = [permission for permission in permissions if permission.pk not in has]
            names = tuple(sorted(map(_name_of, missing)))
            if created or update:
                group.permissions.add(*missing)
                yield Made(group.name, created, added=names)
            else:
                yield Made(group.name, created, lacking=names)


def _name_of(permission: Permission) -> str:
    return f"{permission.content_type.app_label}.{permission.codename}"


def _role_of(permission: Permission) -> str | None:
    """The lowest role that has the permission; None if no role has it."""
    if (special := SPECIAL.get(_name_of(permission))) is not None:
        return special
    if permission.codename.startswith("view_"):
        return VIEWER
    model = permission.content_type.model
    if not is_standard(permission.codename, model):
        return OPERATOR
    return EDITOR if model in EDITED else None
