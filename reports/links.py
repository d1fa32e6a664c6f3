"""Links: the way from an execution's page to its artefacts."""

from __future__ import annotations

from django.template.defaultfilters import filesizeformat
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from reports.models import ReportArtefact


def artefacts_for(execution_id: int) -> list[tuple[str, str]]:
    """What to show and where to fetch it, for each artefact of an execution; results come first."""
    artefacts = ReportArtefact.objects.filter(execution=execution_id).select_related("execution").order_by("-id")
    ordered = sorted(artefacts, key=lambda artefact: not artefact.is_result)
    return [(label(artefact), download_url(artefact)) for artefact in ordered]


def download_url(artefact: ReportArtefact) -> str:
    """The admin's download, which asks for a permission; never the storage's own address."""
    return reverse("admin:reports_reportartefact_download", args=[artefact.pk])


def label(artefact: ReportArtefact) -> str:
    """Name, rows and size, and what it is worth when it is not the result."""
    rows = ngettext("%(count)s row", "%(count)s rows", artefact.rows) % {"count": artefact.rows}
    facts = {"filename": str(artefact), "rows": rows, "size": filesizeformat(artefact.size)}
    if artefact.is_result:
        return _("%(filename)s (%(rows)s, %(size)s)") % facts
    facts["standing"] = str(artefact.standing.label)
    return _("%(filename)s (%(rows)s, %(size)s; %(standing)s)") % facts
