"""The names of permissions in the language of the reader. Django stores them in English."""

from __future__ import annotations

from django.contrib.auth.models import Permission
from django.utils.text import capfirst
from django.utils.translation import gettext as _

from scheduling.core.text import visible_text
from scheduling.models.edited import is_standard


def permission_words(row: Permission) -> str:
    """What the permission allows, such as `Can change schedule`."""
    model = row.content_type.model_class()
    if model is None or not is_standard(row.codename, row.content_type.model):
        # Meta.permissions of the models marks these names. For an empty text, gettext gives the head of the catalogue.
        return visible_text(_(row.name) if row.name else row.codename, 255)
    words = {
        "view": _("Can view %(kind)s"),
        "add": _("Can add %(kind)s"),
        "change": _("Can change %(kind)s"),
        "delete": _("Can delete %(kind)s"),
    }
    text = words[row.codename.partition("_")[0]] % {"kind": model._meta.verbose_name}
    return visible_text(capfirst(text), 255)
