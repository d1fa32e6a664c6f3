"""Admin pages, a file each."""

from reports.admin.artefact import ArtefactAdmin
from reports.admin.report import ReportAdmin

__all__ = ["ArtefactAdmin", "ReportAdmin"]
