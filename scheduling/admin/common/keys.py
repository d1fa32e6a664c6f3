"""The help of the keyboard shortcuts: a part of a page that `keys.js` fetches when a user asks for it."""

from __future__ import annotations

from typing import NamedTuple

from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _

from scheduling.admin.common.pages import READ, Page, Pages
from scheduling.admin.common.viewer import Viewer


class Place(NamedTuple):
    """A page that a shortcut opens: the keys, the page's name and its URL."""

    keys: str
    name: str
    address: str


PLACES = (("g d", "dashboard"), ("g f", "failedexecution"), ("g e", "schedulerexecution"), ("g s", "scheduler"))
"""The keys, and the model of the list that they open."""


class Keys(Pages):
    """Adds the help. It lists only the pages that the user may open."""

    pages: tuple[Page, ...] = (Page("keys", "help", "keys/", READ),)

    def has_help_permission(self, request: HttpRequest) -> bool:
        """Whether the user may open any page of this app. All these pages have the shortcuts."""
        return request.user.has_module_perms("scheduling")

    def keys_view(self, request: HttpRequest) -> HttpResponse:
        viewer = Viewer.of(request)
        names = {
            "dashboard": _("Dashboard"),
            "failedexecution": _("Failed inbox"),
            "schedulerexecution": _("Executions"),
            "scheduler": _("Schedules"),
        }
        places = [Place(keys, names[model], viewer.list_of(model)) for keys, model in PLACES]
        context = {"places": [place for place in places if place.address]}
        # keys.js recognises the part by this header. A login page does not have the header.
        return TemplateResponse(request, "admin/scheduling/keys.html", context, headers={"X-Part": "keys"})
