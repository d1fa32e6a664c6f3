"""The pages of artefacts: a list to look through, and the download."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied, SuspiciousOperation
from django.db.models import QuerySet
from django.http import FileResponse, HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.template.defaultfilters import filesizeformat
from django.urls import NoReverseMatch, URLPattern, path, reverse
from django.utils.decorators import method_decorator
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_safe

from reports.filenames import safe_filename
from reports.links import download_url
from reports.models import ReportArtefact, Standing
from reports.renderers import RENDERERS
from scheduling.admin.edit_history import EditHistory
from scheduling.admin.legible import Legible
from scheduling.admin.parts import MEDIA, chip, shown, when

_TONES = {
    Standing.RESULT: ("check", "good"),
    Standing.PENDING: ("play", "busy"),
    Standing.UNFINISHED: ("warn", "off"),
}

_TYPES = {renderer.content_type for renderer in RENDERERS.values()}


@admin.register(ReportArtefact)
class ArtefactAdmin(EditHistory, Legible):
    """History: nothing can be added, changed or deleted here; retention removes it with its execution."""

    list_display = ("download_link", "run", "attempt", "worth", "rows", "shown_size", "created")
    list_display_links = ("created",)
    list_per_page = 50
    ordering = ("-id",)
    search_fields = ("filename",)
    search_help_text = gettext_lazy("An execution's number, or the beginning of a file name.")
    show_full_result_count = False
    fields = readonly_fields = ("download_link", "run", "attempt", "worth", "rows", "shown_size", "created")

    @property
    def media(self) -> forms.Media:
        """The shared style sheet, beside the admin's own."""
        return super().media + MEDIA

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Only runs make artefacts."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: ReportArtefact | None = None) -> bool:
        """History is not changed."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: ReportArtefact | None = None) -> bool:
        """Retention deletes."""
        return False

    def get_queryset(self, request: HttpRequest) -> QuerySet[ReportArtefact]:
        """With the executions by a query of their own: MariaDB sorts a join as a whole before it pages."""
        return super().get_queryset(request).prefetch_related("execution")

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[ReportArtefact], search_term: str
    ) -> tuple[QuerySet[ReportArtefact], bool]:
        """By execution, or by the beginning of the name: both without a scan for text in the middle."""
        term = search_term.strip()
        if term.isdecimal() and len(term) < 19:
            return queryset.filter(execution=int(term)), False
        return (queryset.filter(filename__istartswith=term), False) if term else (queryset, False)

    def get_urls(self) -> list[URLPattern]:
        """The download, beside the admin's own pages."""
        view = self.admin_site.admin_view(self.download)
        own = path("<int:artefact_id>/download/", view, name="reports_reportartefact_download")
        return [own, *super().get_urls()]

    @method_decorator(require_safe)
    def download(self, request: HttpRequest, artefact_id: int) -> HttpResponseBase:
        """The file, always to be saved and never to be shown, for whoever may view artefacts.

        Raises:
            PermissionDenied: without `reports.view_reportartefact`.
        """
        if not self.has_view_permission(request):
            raise PermissionDenied
        artefact = self.get_object(request, str(artefact_id))
        if artefact is None:
            messages.error(
                request, _("There is no artefact %(id)s; retention may have removed it.") % {"id": artefact_id}
            )
            return redirect("admin:reports_reportartefact_changelist")
        try:
            file = artefact.file.open("rb")
        except (OSError, ValueError, SuspiciousOperation):
            # ValueError: no name. Suspicious: plain SQL wrote one that leads out of the storage.
            text = _(
                "The file of %(name)s cannot be read from here. Consumers and web processes need "
                'one storage for both: a shared MEDIA_ROOT, or an entry "reports" in STORAGES.'
            )
            messages.error(request, text % {"name": artefact.filename})
            return redirect("admin:reports_reportartefact_change", artefact.pk)
        stem, _dot, extension = artefact.filename.rpartition(".")
        response = FileResponse(
            file,
            as_attachment=True,
            filename=safe_filename(stem, extension if extension in RENDERERS else "bin"),
            content_type=artefact.content_type if artefact.content_type in _TYPES else "application/octet-stream",
        )
        response["X-Content-Type-Options"] = "nosniff"
        return response

    @admin.display(description=gettext_lazy("file"), ordering="filename")
    def download_link(self, artefact: ReportArtefact) -> SafeString:
        """The name, leading to the download."""
        return format_html('<a href="{}">{}</a>', download_url(artefact), shown(artefact.filename))

    @admin.display(description=gettext_lazy("execution"))
    def run(self, artefact: ReportArtefact) -> SafeString | str:
        """The execution, by number."""
        try:
            url = reverse("admin:scheduling_schedulerexecution_change", args=[artefact.execution_id])
        except NoReverseMatch:
            return str(artefact.execution_id)
        return format_html('<a href="{}">{}</a>', url, artefact.execution_id)

    @admin.display(description=gettext_lazy("standing"))
    def worth(self, artefact: ReportArtefact) -> SafeString:
        """Whether it is the report's result."""
        standing = artefact.standing
        return chip(standing.label, *_TONES[standing])

    @admin.display(description=gettext_lazy("size"), ordering="size")
    def shown_size(self, artefact: ReportArtefact) -> Any:
        """The size in a fitting unit."""
        return filesizeformat(artefact.size)

    @admin.display(description=gettext_lazy("created"), ordering="id")
    def created(self, artefact: ReportArtefact) -> str:
        """When it was made."""
        return when(artefact.created_at)
