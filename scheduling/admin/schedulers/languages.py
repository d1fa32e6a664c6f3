"""The languages that the form of a schedule offers."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _

from scheduling.models.visibility import Visibility

LOOKED_AT = 1_000
"""The languages of so many of the newest schedules are offered first."""


def language_choices(own: str, visible: Visibility) -> list[Any]:
    """The choices: as the settings say, the languages in use, and then all languages of the settings.

    Args:
        visible: the schedules that the user sees.
        own: the language of the schedule. It is offered even if the settings do not know it any more.
    """
    names = {code: _(str(name)) for code, name in settings.LANGUAGES}  # Django's catalogue has the names
    used = set(visible.schedules().order_by("-pk").values_list("language", flat=True)[:LOOKED_AT]) | {own}
    first = sorted(({code for code in used if code} | {settings.LANGUAGE_CODE}) & {*names, own})
    rest = [(code, name) for code, name in names.items() if code not in first]
    groups = [(_("In use"), [(code, names.get(code, code)) for code in first if code]), (_("All languages"), rest)]
    return [("", _("The site's language")), *(group for group in groups if group[1])]
