"""Makes URLs of admin pages, and links to these pages. A URL belongs to the AdminSite that handles the request."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

_site: ContextVar[str | None] = ContextVar("scheduling_admin_site", default=None)


@contextmanager
def addresses_on(site: str) -> Iterator[None]:
    """Inside this context, `admin_url` returns URLs of the AdminSite whose name is `site`.

    The name is kept in a context variable, because the functions that make columns and badges do not get the request. A
    context variable belongs to one thread or asyncio task, and the old value is restored when the `with` block ends. So
    one request never uses the site of another request.
    """
    token = _site.set(site)
    try:
        yield
    finally:
        _site.reset(token)


def admin_url(name: str, *args: object) -> str:
    """The URL of a page of the admin, such as `admin_url("scheduling_scheduler_change", pk)`.

    Outside a view of this package, the URL belongs to the default site.

    Raises:
        NoReverseMatch: the model is not registered on the site.
    """
    return reverse(f"admin:{name}", args=args, current_app=_site.get())


def list_url(model: str, **filters: object) -> str:
    """The URL of a model's list with these filters."""
    address = admin_url(f"scheduling_{model}_changelist")
    return f"{address}?{urlencode(filters)}" if filters else address


def execution_url(pk: object) -> str:
    """The URL of an execution's page."""
    return admin_url("scheduling_schedulerexecution_change", pk)


def scheduler_url(pk: object) -> str:
    """The URL of a schedule's page."""
    return admin_url("scheduling_scheduler_change", pk)


def link(address: str, text: object) -> SafeString:
    """A link to the URL `address` with this text."""
    return format_html('<a href="{}">{}</a>', address, text)


def execution_link(pk: object) -> SafeString:
    """A link to an execution's page."""
    return link(execution_url(pk), _("execution %(id)s") % {"id": pk})
