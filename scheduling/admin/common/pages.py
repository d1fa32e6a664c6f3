"""The base class of our ModelAdmins. It adds pages to Django's own pages, and keeps all links on one AdminSite."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, NamedTuple, TypeVar

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseNotAllowed, HttpResponseRedirect
from django.template.response import SimpleTemplateResponse, TemplateResponse
from django.urls import URLPattern, path
from django.utils.translation import gettext as _

from scheduling.admin.common import hold_notice, refused_values
from scheduling.admin.common.filter_bar import FilterBar, notes_of
from scheduling.admin.common.unusable import explained
from scheduling.admin.ui.links import addresses_on, admin_url
from scheduling.admin.ui.media import MEDIA
from scheduling.admin.ui.text import searched
from scheduling.core.deployment import Held
from scheduling.core.text import visible_text
from scheduling.handlers.permission import refusal
from scheduling.models import Replay

R = TypeVar("R", bound=HttpResponseBase)
View = Callable[..., HttpResponseBase]
READ = ("GET", "HEAD")


class Page(NamedTuple):
    """A page that we add to a ModelAdmin. Its URL name is `<app>_<model>_<name>`.

    The ModelAdmin's method `<name>_view` answers requests for the page.
    The method gets the request and the row whose key is `object_id` in the URL. If the route has no `object_id`,
    the method gets the request and the values of the route.

    Args:
        permission: `has_<permission>_permission` must allow the request, as for an admin action. If empty, the page
            has no permission of its own.
        route: the part of the URL after the URL of the model's list. {name} is replaced by the page's name.
        methods: the allowed HTTP methods. If empty, all methods are allowed.
    """

    name: str
    permission: str = ""
    route: str = "<path:object_id>/{name}/"
    methods: Sequence[str] = ()


class Pages(admin.ModelAdmin):
    """The base of every ModelAdmin of this package, and of the mixins that add `pages` to a ModelAdmin."""

    show_add_link = True
    """For django-unfold, whose header asks for it before it shows the button "Add"."""

    pages: tuple[Page, ...] = ()

    @property
    def media(self) -> forms.Media:
        return super().media + MEDIA

    def get_changelist_instance(self, request: HttpRequest) -> ChangeList:
        """The list, with the line of filters above it as `bar`."""
        changelist = super().get_changelist_instance(request)
        changelist.bar = FilterBar(changelist, notes_of(request))  # type: ignore[attr-defined]
        return changelist

    def get_search_results(self, request: HttpRequest, queryset: QuerySet, search_term: str) -> tuple[QuerySet, bool]:
        return super().get_search_results(request, queryset, searched(search_term))

    @property
    def urls(self) -> list[URLPattern]:
        """Wraps all views in `explained` and `on_site`.

        The views are wrapped here and not in `get_urls`, because a subclass may add more views in `get_urls`.
        """
        found = super().urls
        for pattern in found:
            if isinstance(pattern, URLPattern):
                pattern.callback = on_site(self.admin_site.name, explained(self, pattern.callback))
        return found

    def get_urls(self) -> list[URLPattern]:
        """Puts our pages before Django's pages, because Django's last pattern matches any URL."""
        return [*self.page_urls(), *super().get_urls()]

    def page_urls(self) -> list[URLPattern]:
        """The URL patterns of `pages`, from this class and all its base classes."""
        prefix = f"{self.opts.app_label}_{self.opts.model_name}"
        pages: list[Page] = [page for base in type(self).__mro__ for page in vars(base).get("pages", ())]
        return [
            path(page.route.format(name=page.name), self._checked(page), name=f"{prefix}_{page.name}") for page in pages
        ]

    def _checked(self, page: Page) -> View:
        view: View = getattr(self, f"{page.name}_view")

        @wraps(view)
        def checked(request: HttpRequest, **values: Any) -> HttpResponseBase:
            if page.permission and not getattr(self, f"has_{page.permission}_permission")(request):
                raise PermissionDenied
            if page.methods and request.method not in page.methods:
                return HttpResponseNotAllowed(page.methods)
            if "object_id" in values:
                return self.with_row(request, values["object_id"], _guarded(self, page, view))
            return view(request, **values)

        return self.admin_site.admin_view(checked)

    def with_row(
        self, request: HttpRequest, object_id: str, view: Callable[..., R], *args: Any
    ) -> R | HttpResponseRedirect:
        """The view's response for the row, or the response of `not_found` if there is no such row.

        Raises:
            PermissionDenied: the user may not view the row.
        """
        row = self.get_object(request, unquote(object_id))
        if not self.has_view_or_change_permission(request, row):
            raise PermissionDenied
        return view(request, row, *args) if row is not None else self.not_found(request, object_id)

    def changeform_view(
        self, request: HttpRequest, object_id: str | None = None, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """Refuses to save for a user who may change no row, whether or not there is such a row.

        From version 6.1, Django says first that there is no such row. The HTTP API refuses, like Django before 6.1.
        """
        saves = request.method == "POST" and object_id is not None and not self.has_change_permission(request)
        if saves and self.get_object(request, unquote(str(object_id))) is None:
            raise PermissionDenied
        return super().changeform_view(request, object_id, form_url, extra_context)

    def not_found(self, request: HttpRequest, object_id: str) -> HttpResponseRedirect:
        """Redirects to the list, and shows a message that no row has this key."""
        return self._get_obj_does_not_exist_redirect(request, self.opts, object_id)

    def _get_obj_does_not_exist_redirect(self, request: HttpRequest, opts: Any, object_id: str) -> HttpResponseRedirect:
        """Django's own pages call this method, too. They would lead to the admin's index."""
        kind = {"kind": opts.verbose_name, "key": visible_text(unquote(object_id), 60)}
        self.message_user(request, _("There is no %(kind)s “%(key)s”. It may be deleted.") % kind, messages.WARNING)
        name = f"{opts.app_label}_{opts.model_name}_changelist"
        return HttpResponseRedirect(admin_url(name if self.has_view_or_change_permission(request) else "index"))

    def page_response(self, request: HttpRequest, template: str, **context: Any) -> TemplateResponse:
        """A page with the site's header and navigation. `context` must contain a title."""
        frame = {**self.admin_site.each_context(request), "opts": self.opts, "subtitle": None, "media": MEDIA}
        return TemplateResponse(request, template, frame | context)


ACTS = {"run", "backfill", "pause", "cancel", "rerun", "republish", "discard"}
"""The permissions of pages that run, change or end something, so that the handler's own permission is needed, too."""


def _guarded(admin: Pages, page: Page, view: View) -> View:
    """A view that refuses an act on a row whose code asks for a permission that the user lacks."""
    if page.permission not in ACTS:
        return view

    @wraps(view)
    def inner(request: HttpRequest, row: Any, *args: Any) -> HttpResponseBase:
        if isinstance(row, Replay) or not (said := refusal(request.user, row)):
            return view(request, row, *args)
        admin.message_user(request, said, messages.ERROR)
        return HttpResponseRedirect(admin_url(f"{row._meta.app_label}_{row._meta.model_name}_change", row.pk))

    return inner


def on_site(site: str, view: View) -> View:
    """A view that calls `view` and lets all links in the response lead to the AdminSite with the name `site`.

    If the database cannot use a value of the request, the response is 400. If nothing may be started now, the response
    leads back to the page.
    The response may be rendered after the view has returned. Its links lead to this AdminSite, too.
    """

    @wraps(view)
    def inner(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        request.current_app = site  # for {% url %}
        try:
            with addresses_on(site):
                response = view(request, *args, **kwargs)
        except Held as held:
            return hold_notice.refused(request, held)
        except Exception as error:
            if (refused := refused_values.answer(request, error)) is None:
                raise
            return refused
        hold_notice.add_notice(request, response)
        if isinstance(response, SimpleTemplateResponse) and not response.is_rendered:
            # The columns of lists and the read-only fields are computed during rendering.
            response.render = addresses_on(site)(response.render)  # type: ignore[method-assign]
        return response

    return inner
