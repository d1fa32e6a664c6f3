"""The reports app's configuration."""

from __future__ import annotations

from django.apps import AppConfig
from django.db.models.signals import post_migrate
from django.utils.translation import gettext_lazy as _


class ReportsConfig(AppConfig):
    """Registers the system checks, and creates a Report row for each registered controller after `migrate`."""

    name = "reports"
    label = "cron_reports"  # many projects have an app with the label "reports"; a label cannot be changed later
    verbose_name = _("Reports")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from reports import checks  # noqa: F401 (the import registers the checks)
        from scheduling.handlers.targets import sync_after_migrate

        post_migrate.connect(sync_after_migrate, sender=self, dispatch_uid="reports.targets")
