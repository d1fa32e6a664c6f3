"""The stored nouns, one a file."""

from reports.models.artefact import ReportArtefact, Standing
from reports.models.report import Report

__all__ = ["Report", "ReportArtefact", "Standing"]
