"""Buttons that are links, and menus that open without JavaScript."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _


class Entry(NamedTuple):
    """An entry of a menu. `about` says in one line what the action does."""

    label: Any
    address: str
    about: Any = ""


def button(label: Any, address: str, about: Any, css: str = "default") -> SafeString:
    """A link that looks like a button. Screen readers also read `about`, which names the object."""
    text = '<a class="button {}" href="{}">{}<span class="sch-hidden"> {}</span></a>'
    return format_html(text, css, address, label, about)


def menu(about: Any, entries: Iterable[Entry]) -> SafeString:
    """A menu. Screen readers read its name as "More for" the object `about`.

    By its key, `swap.js` finds the menu again after it has replaced the part of the page around it.
    """
    items = format_html_join(
        "",
        '<li><a href="{}">{}</a>{}</li>',
        (
            (entry.address, entry.label, format_html('<span class="sch-below">{}</span>', entry.about))
            for entry in entries
        ),
    )
    label = _("More for %(what)s") % {"what": about}
    summary = format_html('<summary class="button" aria-label="{}">…</summary>', label)
    template = '<details class="sch-menu" name="sch-menu" data-key="{}">{}<ul>{}</ul></details>'
    return format_html(template, label, summary, items)
