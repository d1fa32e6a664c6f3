"""The scheduling app: wiring only."""

from __future__ import annotations

from django.apps import AppConfig
from django.core.checks import register
from django.db.models.signals import post_migrate, pre_save
from django.utils.module_loading import autodiscover_modules
from django.utils.translation import gettext_lazy as _


class SchedulingConfig(AppConfig):
    """Finds handlers, registers checks and keeps the target rows."""

    name = "scheduling"
    verbose_name = _("Scheduling")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from scheduling import checks
        from scheduling.contract import check_before_save
        from scheduling.edited import record_missed
        from scheduling.models import Scheduler
        from scheduling.targets import sync_after_migrate

        autodiscover_modules("workers")
        autodiscover_modules("reports")
        checks.register_all(register)
        post_migrate.connect(sync_after_migrate, sender=self, dispatch_uid="scheduling.targets")
        pre_save.connect(check_before_save, sender=Scheduler, dispatch_uid="scheduling.contract")
        pre_save.connect(record_missed, sender=Scheduler, dispatch_uid="scheduling.edited")
