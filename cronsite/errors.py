"""The pages for an address that does not exist, and for a page that the user may not see."""

from __future__ import annotations

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """The page for status 404. It has the sidebar, so that the user finds a way on."""
    return _page(request, 404, _("Page not found"), _("This address does not exist, or what it showed was deleted."))


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    """The page for status 403."""
    return _page(
        request, 403, _("Not allowed"), _("You may not see this page. Ask an administrator for the permission.")
    )


def _page(request: HttpRequest, status: int, title: str, sentence: str) -> HttpResponse:
    own = {"title": title, "sentence": sentence, "is_nav_sidebar_enabled": admin.site.has_permission(request)}
    context = {**admin.site.each_context(request), **own}
    return TemplateResponse(request, "admin/scheduling/error.html", context, status=status)
