"""Says on every page that this process holds, because its database was copied or restored."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.contrib import messages
from django.contrib.messages.storage.base import Message
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponseRedirect
from django.template.response import SimpleTemplateResponse
from django.urls import NoReverseMatch
from django.utils.functional import cached_property
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from scheduling.admin.ui.links import admin_url, link
from scheduling.core.deployment import Held, Hold
from scheduling.core.known_sentences import for_reader
from scheduling.processes.guard import guard


class Notices:
    """The messages of a page, with the hold as the first one. The row is read when a template asks for the messages.

    The notice is no stored message: a message would be shown once, and would pile up while no page shows it.
    """

    def __init__(self, request: HttpRequest) -> None:
        self._request = request

    @cached_property
    def _hold(self) -> Hold | None:
        try:
            return guard.look()
        except DatabaseError:
            return None  # the page itself says that the database is away

    def __bool__(self) -> bool:
        return self._hold is not None or bool(len(messages.get_messages(self._request)))

    def __iter__(self) -> Iterator[Any]:
        if self._hold is not None:
            yield Message(messages.ERROR, _text(self._hold))
        yield from messages.get_messages(self._request)


def _text(hold: Hold) -> SafeString:
    said = _("Nothing is claimed, started or published. %(reason)s") % {"reason": for_reader(hold.said, 500)}
    try:
        page = link(admin_url("scheduling_deployment_changelist"), _("Look and confirm"))
    except NoReverseMatch:  # a site without this page
        page = SafeString("manage.py confirm_deployment")
    return format_html("{} {}", said, page)


def add_notice(request: HttpRequest, response: Any) -> None:
    """Let a page that is not rendered yet show the notice."""
    if isinstance(response, SimpleTemplateResponse) and not response.is_rendered:
        if response.context_data is None:
            response.context_data = {}
        # The context of a page goes before what context processors give.
        response.context_data["messages"] = Notices(request)


def refused(request: HttpRequest, held: Held) -> HttpResponseRedirect:
    """The answer to an act that would start something: back to the page, which says that nothing was started."""
    messages.error(request, _("Nothing was started: %(reason)s") % {"reason": for_reader(str(held), 500)})
    return HttpResponseRedirect(request.get_full_path())
