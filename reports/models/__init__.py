"""Collects the Django models of the reports app. Each model has its own file."""

from reports.models.report import Report

__all__ = ["Report"]
