"""The reports app: a Report row names a registered ReportController."""

from __future__ import annotations

from django.apps import AppConfig
from django.db.models.signals import post_migrate
from django.utils.translation import gettext_lazy as _


class ReportsConfig(AppConfig):
    """Makes a Report row for each registered controller after `migrate`, and ties artefacts to executions."""

    name = "reports"
    verbose_name = _("Reports")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from reports.links import artefacts_for
        from reports.prune import remove_artefacts
        from scheduling import artefacts
        from scheduling.signals import executions_pruned
        from scheduling.targets import sync_after_migrate

        post_migrate.connect(sync_after_migrate, sender=self, dispatch_uid="reports.targets")
        executions_pruned.connect(remove_artefacts, dispatch_uid="reports.artefacts")
        artefacts.register(artefacts_for)
