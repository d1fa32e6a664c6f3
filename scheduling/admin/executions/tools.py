"""The buttons at the top of an execution's page: the likely actions as buttons, all others in a menu."""

from __future__ import annotations

from collections.abc import Mapping

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from scheduling.admin.ui.links import admin_url
from scheduling.admin.ui.menu import Entry, button, menu
from scheduling.models import SchedulerExecution


def tools(row: SchedulerExecution, may: Mapping[str, bool]) -> SafeString:
    """The buttons and the menu.

    Args:
        may: which actions the state and the user's permissions allow, as `page.may` returns.
    """
    buttons: list[Entry] = []
    entries: list[Entry] = []
    if may["cancel"]:
        buttons.append(Entry(_("Cancel"), _execution("cancel", row)))
    if may["republish"] and row.type:
        buttons.append(Entry(_("Republish"), _failure("republish", row)))
    if may["edit"]:
        buttons.append(Entry(_("Edit and republish"), _failure("edit", row)))
    if may["discard"]:
        about = _("Remove it from the inbox without running it again. You will be asked for a reason.")
        entries.append(Entry(_("Discard"), _failure("discard", row), about))
    if may["rerun"]:
        stays = _("%(what)s This failure stays in the inbox.") if may["republish"] or may["discard"] else "%(what)s"
        about = stays % {"what": _("A new run with the same parameters.")}
        rerun = Entry(_("Run again"), _execution("rerun", row), about)
        (entries if buttons else buttons).append(rerun)
        about = stays % {"what": _("A new run with other parameters.")}
        entries.append(Entry(_("Edit and run again"), _execution("edit_rerun", row), about))
    entries.append(Entry(_("History"), _execution("history", row), _("Who did what with this run.")))
    about = _("execution %(id)s") % {"id": row.pk}
    first = "sch-outline-danger" if may["cancel"] else "default"
    styles = [first, *["sch-outline"] * len(buttons)]
    shown = [button(entry.label, entry.address, about, css) for entry, css in zip(buttons, styles, strict=False)]
    parts = format_html_join("", "{}", ((part,) for part in [*shown, menu(about, entries)]))
    return format_html('<div class="sch-tools">{}</div>', parts)


def _execution(page: str, row: SchedulerExecution) -> str:
    return admin_url(f"scheduling_schedulerexecution_{page}", row.pk)


def _failure(page: str, row: SchedulerExecution) -> str:
    return admin_url(f"scheduling_failedexecution_{page}", row.pk)
