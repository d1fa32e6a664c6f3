"""Style sheets and scripts of the pages."""

from __future__ import annotations

from django import forms
from django.conf import settings
from django.urls import NoReverseMatch
from django.utils.functional import lazy
from django.utils.translation import gettext_lazy as _

from scheduling.admin.ui.links import admin_url


def page_media(*, sheets: tuple[str, ...] = (), scripts: tuple[str, ...] = ()) -> forms.Media:
    """The style sheets and scripts in `static/scheduling/` that have these names."""
    return forms.Media(
        css={"all": [f"scheduling/{name}.css" for name in sheets]},
        # The scripts are in the head but need elements of the body, so the browser must run them later.
        js=[forms.Script(f"scheduling/{name}.js", defer=True) for name in scripts],  # type: ignore[misc]  # the stubs know only paths
    )


def _help_url() -> str:
    try:
        return admin_url("scheduling_schedulerexecution_keys")
    except NoReverseMatch:  # a site without the pages of executions has no help
        return ""


_KEYS = forms.Script(
    "scheduling/keys.js",
    # The address belongs to the site of the request, so it is looked up when a page is rendered.
    **{"defer": True, "data-help": lazy(_help_url, str)(), "data-label": _("Keyboard shortcuts")},
)


def _theme_sheets() -> tuple[str, ...]:
    """The sheets for the theme of the project. The theme django-unfold needs one."""
    has_unfold = any(app.partition(".")[0] == "unfold" for app in settings.INSTALLED_APPS)
    return ("unfold",) if has_unfold else ()


MEDIA = page_media(sheets=("admin", "lists", "rows", *_theme_sheets())) + forms.Media(js=[_KEYS])  # type: ignore[list-item]  # the stubs know only paths
"""The style sheets and the script that all pages need."""
