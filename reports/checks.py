"""Django's system checks of reports. The warnings stop no command."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Warning, register
from django.core.files.storage import storages

from reports.registry import controller_of
from reports.renderers import RENDERERS
from scheduling.handlers import handlers
from scheduling.models.artefact import STORAGE


@register("reports")
def check_media_root(**_kwargs: Any) -> list[CheckMessage]:
    """W002: report files would be written to the working directory, which each process may have for itself."""
    backends: Any = storages.backends
    if STORAGE in backends or settings.MEDIA_ROOT:
        return []
    default = backends["default"]
    if default["BACKEND"] != "django.core.files.storage.FileSystemStorage" or default.get("OPTIONS", {}).get(
        "location"
    ):
        return []
    text = "MEDIA_ROOT is not set, so reports and attached files are written to the working directory of each process."
    return [Warning(text, hint=MEDIA_HINT, id="reports.W002")]


MEDIA_HINT = (
    'Set MEDIA_ROOT to a folder that all processes share, such as BASE_DIR / "media", or name a storage for these '
    'files alone: STORAGES["artefacts"]. The folder should not be one that the web server shows to all visitors.'
)


@register("reports")
def check_formats(**_kwargs: Any) -> list[CheckMessage]:
    """W001: a package that a report's format needs is not installed. The runs of this report will fail."""
    return [
        Warning(f"Report {handler.name!r} cannot be written. {problem}", id="reports.W001")
        for handler in handlers("report")
        for format_ in getattr(controller_of(handler), "formats", ())
        if (problem := RENDERERS[format_].missing())
    ]
