"""The three groups of people who use the admin, made of the permissions that there are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from django.contrib.auth.models import Group, Permission
from django.db import transaction

VIEWER, OPERATOR, EDITOR = "viewer", "operator", "editor"

APPS = ("scheduling", "reports")
"""Labels of the apps whose permissions they hold: an app that is not installed has none."""

STANDARD = ("view", "add", "change", "delete")
"""What Django makes for each model, as the beginning of a code name; anything else is an action of the apps' own."""

EDITED = ("scheduler", "worker", "report", "reminder")
"""Models whose rows people write; all others are history, which nobody changes in the admin."""


@dataclass(frozen=True)
class Made:
    """What became of one group.

    Args:
        added: the permissions that it was given now, as `app_label.codename`.
        lacking: those that it has not, as it was there before and was left alone.
    """

    name: str
    created: bool
    added: tuple[str, ...] = ()
    lacking: tuple[str, ...] = ()


def wanted(role: str) -> list[Permission]:
    """The permissions of a role: each has those of the one before it, and more."""
    roles = (VIEWER, OPERATOR, EDITOR)[: (VIEWER, OPERATOR, EDITOR).index(role) + 1]
    found = Permission.objects.filter(content_type__app_label__in=APPS).select_related("content_type")
    return [permission for permission in found if _role_of(permission) in roles]


def make_groups(prefix: str = "", *, update: bool = False) -> Iterator[Made]:
    """Make the groups that are missing.

    One that is there is left as it is, for a team may have taken a permission away from it; nothing is ever taken away.

    Args:
        prefix: before each name, where a project has groups of these names already.
        update: give groups that are there what they lack, too.
    """
    for role in (VIEWER, OPERATOR, EDITOR):
        with transaction.atomic():
            permissions = wanted(role)
            group, created = Group.objects.get_or_create(name=f"{prefix}{role}")
            has = set(group.permissions.values_list("pk", flat=True))
            missing = [permission for permission in permissions if permission.pk not in has]
            names = tuple(sorted(f"{each.content_type.app_label}.{each.codename}" for each in missing))
            if created or update:
                group.permissions.add(*missing)
                yield Made(group.name, created, added=names)
            else:
                yield Made(group.name, created, lacking=names)


def _role_of(permission: Permission) -> str | None:
    """The least role that has it; None for what no group has."""
    verb, _, model = permission.codename.partition("_")
    if verb == "view":
        return VIEWER
    if verb not in STANDARD or model != permission.content_type.model:
        return OPERATOR
    return EDITOR if model in EDITED else None
