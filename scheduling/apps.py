"""The Django configuration of the scheduling app."""

from __future__ import annotations

from django.apps import AppConfig, apps
from django.db.backends.signals import connection_created
from django.db.models.signals import post_migrate, post_save, pre_delete, pre_save
from django.utils.module_loading import autodiscover_modules, module_has_submodule
from django.utils.translation import get_language, gettext, ngettext, pgettext
from django.utils.translation import gettext_lazy as _


class SchedulingConfig(AppConfig):
    """Finds handlers, registers system checks, and connects the receivers of Django's signals."""

    name = "scheduling"
    verbose_name = _("Scheduling")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from scheduling import (
            api,
            checks,  # noqa: F401 (the import registers the checks)
            project_checks,  # noqa: F401
        )
        from scheduling.core import words
        from scheduling.execution.cancel import end_with_schedule
        from scheduling.execution.planning import record_former
        from scheduling.execution.revisions import after_save, before_delete, before_save
        from scheduling.handlers.registered import WayIn
        from scheduling.handlers.targets import sync_after_migrate
        from scheduling.handlers.validation import check_before_save
        from scheduling.models import Scheduler
        from scheduling.processes.deployment_row import make_after_migrate
        from scheduling.processes.lost_hosts import limit_lost_hosts
        from scheduling.processes.sort_buffer import enlarge_sort_buffer
        from scheduling.processes.sqlite_modes import set_sqlite_modes
        from scheduling.signals import executions_replayed

        if apps.is_installed("django.contrib.admin"):
            from scheduling.inbox.replay_log import log_replayed

            executions_replayed.connect(log_replayed, dispatch_uid="scheduling.replay_log")

        words.install(gettext, pgettext, ngettext, lambda: get_language() or "en")
        WayIn.submit = api.run
        connection_created.connect(limit_lost_hosts, dispatch_uid="scheduling.lost_hosts")
        connection_created.connect(enlarge_sort_buffer, dispatch_uid="scheduling.sort_buffer")
        connection_created.connect(set_sqlite_modes, dispatch_uid="scheduling.sqlite_modes")
        autodiscover_modules("workers")
        autodiscover_modules("reports")
        if any(module_has_submodule(config.module, "tasks") for config in apps.get_app_configs() if config is not self):
            # Without such a module, Django's Tasks framework need not be loaded. It takes a megabyte in each process.
            from scheduling.tasks.discovery import discover_tasks

            discover_tasks()
        post_migrate.connect(sync_after_migrate, sender=self, dispatch_uid="scheduling.targets")
        post_migrate.connect(make_after_migrate, sender=self, dispatch_uid="scheduling.deployment")
        pre_save.connect(before_save, sender=Scheduler, dispatch_uid="scheduling.revisions")
        pre_save.connect(check_before_save, sender=Scheduler, dispatch_uid="scheduling.validation")
        pre_save.connect(record_former, sender=Scheduler, dispatch_uid="scheduling.planning")
        post_save.connect(after_save, sender=Scheduler, dispatch_uid="scheduling.revisions")
        pre_delete.connect(before_delete, sender=Scheduler, dispatch_uid="scheduling.revisions")
        pre_delete.connect(end_with_schedule, sender=Scheduler, dispatch_uid="scheduling.services")
