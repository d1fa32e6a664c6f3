"""The pages of artefacts: a list, a detail page, and the download."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.template.defaultfilters import filesizeformat
from django.urls import NoReverseMatch
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from scheduling.admin.common.pages import READ, Page
from scheduling.admin.common.read_only import ReadOnly
from scheduling.admin.ui.badges import badge
from scheduling.admin.ui.links import admin_url, execution_url, link, list_url
from scheduling.admin.ui.text import is_number, searched
from scheduling.admin.ui.times import time_with_relative
from scheduling.artefacts import links_for
from scheduling.core.text import visible_text
from scheduling.models import Artefact
from scheduling.models.artefact import Standing
from scheduling.models.visibility import visibility_of
from scheduling.operations.artefacts import download
from scheduling.operations.refused import Refused

_TONES = {Standing.RESULT: ("check", "good"), Standing.PENDING: ("play", "busy"), Standing.UNFINISHED: ("warn", "off")}


@admin.register(Artefact)
class ArtefactAdmin(ReadOnly):
    """Artefacts are read-only. Runs make artefacts, and retention removes an execution together with its artefacts."""

    pages = (Page("download", methods=READ),)
    list_display = ("download_link", "run", "attempt", "worth", "rows", "shown_size", "created")
    list_display_links = ("created",)
    search_fields = ("filename",)
    search_help_text = gettext_lazy("Search file name, execution")
    fields = readonly_fields = (
        "download_link", "run", "attempt", "worth", "rows", "shown_size", "shown_checksum", "created"
    )  # fmt: skip

    def get_queryset(self, request: HttpRequest) -> QuerySet[Artefact]:
        # select_related would be slow: MariaDB sorts all rows of a join before it returns one page.
        return visibility_of(request.user).of_executions(super().get_queryset(request)).prefetch_related("execution")

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Artefact], search_term: str
    ) -> tuple[QuerySet[Artefact], bool]:
        """Searches by execution id, or by the beginning of the file name.

        A search for the middle of a name would read the whole table.
        """
        term = searched(search_term)
        if is_number(term):
            return queryset.filter(execution=int(term)), False
        return (queryset.filter(filename__istartswith=term), False) if term else (queryset, False)

    def not_found(self, request: HttpRequest, object_id: str) -> HttpResponseRedirect:
        text = _("There is no artefact %(id)s; retention may have removed it.") % {"id": visible_text(object_id, 40)}
        messages.error(request, text)
        return HttpResponseRedirect(list_url("artefact"))

    def download_view(self, request: HttpRequest, artefact: Artefact) -> HttpResponseBase:
        """Sends the file as an attachment, so that a browser saves the file and never shows it."""
        try:
            return download(artefact)
        except Refused as refused:
            messages.error(request, refused.said)
            return HttpResponseRedirect(admin_url("scheduling_artefact_change", artefact.pk))

    @admin.display(description=gettext_lazy("file"), ordering="filename")
    def download_link(self, artefact: Artefact) -> SafeString:
        """The file name as a link to the download."""
        return link(download_url(artefact), visible_text(artefact.filename))

    @admin.display(description=gettext_lazy("execution"))
    def run(self, artefact: Artefact) -> SafeString | str:
        """The execution's number as a link to the execution's page."""
        try:
            return link(execution_url(artefact.execution_id), artefact.execution_id)
        except NoReverseMatch:
            return str(artefact.execution_id)

    @admin.display(description=gettext_lazy("from the attempt that succeeded"))
    def worth(self, artefact: Artefact) -> SafeString:
        """The artefact's standing as a badge. The standing says whether the file is the result of its run."""
        standing = artefact.standing
        return badge(standing.label, *_TONES[standing])

    @admin.display(description=gettext_lazy("size"), ordering="size")
    def shown_size(self, artefact: Artefact) -> Any:
        """The size as text with a unit, such as `1.2 KB`."""
        return filesizeformat(artefact.size)

    @admin.display(description="SHA-256")
    def shown_checksum(self, artefact: Artefact) -> SafeString | str:
        """The SHA-256 as text, or a dash if the row has none. `sha256sum` prints the same digits for a download."""
        return format_html("<code>{}</code>", visible_text(artefact.checksum, 64)) if artefact.checksum else "-"

    @admin.display(description=gettext_lazy("created"), ordering="id")
    def created(self, artefact: Artefact) -> str:
        return time_with_relative(artefact.created_at)


def all_links(execution_id: int) -> list[tuple[str, str]]:
    """Pairs of label and URL, one for each file of an execution. The files of other apps come last."""
    return [*artefacts_for(execution_id), *links_for(execution_id)]


def artefacts_for(execution_id: int) -> list[tuple[str, str]]:
    """Pairs of label and download URL, one for each artefact of an execution. Results come first."""
    artefacts = Artefact.objects.filter(execution=execution_id).select_related("execution").order_by("-id")
    ordered = sorted(artefacts, key=lambda artefact: not artefact.is_result)
    return [(label(artefact), download_url(artefact)) for artefact in ordered]


def download_url(artefact: Artefact) -> str:
    """The URL of the admin's download page for the artefact.

    The storage's own URL is never shown, because only the download page checks the user's permission.
    """
    return admin_url("scheduling_artefact_download", artefact.pk)


def label(artefact: Artefact) -> str:
    """Name, number of rows, and size. If the artefact is not a result, the label also shows the artefact's standing."""
    size = filesizeformat(artefact.size)
    if artefact.rows is not None:
        rows = ngettext("%(count)s row", "%(count)s rows", artefact.rows) % {"count": artefact.rows}
        size = _("%(rows)s, %(size)s") % {"rows": rows, "size": size}
    facts = {"filename": str(artefact), "size": size}
    if artefact.is_result:
        return _("%(filename)s (%(size)s)") % facts
    facts["standing"] = str(artefact.standing.label)
    return _("%(filename)s (%(size)s; from the attempt that succeeded: %(standing)s)") % facts
