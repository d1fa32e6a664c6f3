"""An admin site for projects that run nothing but schedules: the dashboard is its first page.

Django imports this module before it imports `scheduling.admin`, so this module imports nothing from there.
"""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from scheduling.core.lifecycle import State
from scheduling.models import SchedulerExecution
from scheduling.models.counts import Count, counts
from scheduling.models.newest import in_parts
from scheduling.models.visibility import visibility_of

ORDER = (
    ("scheduling", "Dashboard"),
    ("scheduling", "FailedExecution"),
    ("scheduling", "Alert"),
    ("scheduling", "SchedulerExecution"),
    ("scheduling", "Scheduler"),
    ("scheduling", "Review"),
    ("scheduling", "Worker"),
    ("cron_reports", "Report"),
    ("scheduling", "Reminder"),
    ("scheduling", "Calendar"),
    ("scheduling", "Channel"),
    ("scheduling", "AlertRule"),
    ("scheduling", "Pause"),
    ("scheduling", "Breaker"),
    ("scheduling", "LimitKey"),
    ("scheduling", "LoweredLimit"),
    ("scheduling", "Process"),
    ("scheduling", "Deployment"),
    ("scheduling", "Replay"),
    ("scheduling", "Backfill"),
    ("scheduling", "MovedRun"),
    ("scheduling", "Event"),
    ("scheduling", "Artefact"),
    ("scheduling", "ApiToken"),
)
"""The app and the name of each model of the sidebar's first section, ordered by how often operators need its pages."""

COUNTED = 1_000
"""The number of failures at which the sidebar stops counting."""


class CronAdminSite(admin.AdminSite):
    """Orders the sidebar by use, and shows the number of failures beside the inbox.

    A project chooses this site with an `AdminConfig` whose `default_site` is the path of this class.
    """

    site_header = gettext_lazy("Cron")
    site_title = gettext_lazy("Cron")
    index_title = gettext_lazy("All pages")
    site_url = None

    def index(  # type: ignore[override]
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Leads to the dashboard. Users who may not see the dashboard get the list of all pages."""
        if request.user.has_perm("scheduling.view_dashboard"):
            return HttpResponseRedirect(reverse("admin:scheduling_dashboard_changelist", current_app=self.name))
        return super().index(request, extra_context)

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> list[Any]:
        """Our models as one section, then the other apps as Django orders them.

        Args:
            app_label: the app whose page is shown; None for the sidebar and for the list of all pages.
        """
        apps = super().get_app_list(request, app_label)
        if app_label is not None:
            return apps
        models = {(app["app_label"], model["object_name"]): model for app in apps for model in app["models"]}
        own = [models[key] for key in ORDER if key in models]
        for model in own:
            if model["object_name"] == "FailedExecution":
                known: Count | None = getattr(request, "failures", None)  # the dashboard has counted them
                _name_failures(model, _failures_seen(request) if known is None else known)
        for app in apps:
            app["models"] = [model for model in app["models"] if model not in own]
        first: dict[str, Any] = {
            "name": _("Cron"),
            "app_label": "scheduling",
            "app_url": next((app["app_url"] for app in apps if app["app_label"] == "scheduling"), ""),
            "has_module_perms": True,
            "models": own,
        }
        others = [app for app in apps if app["models"]]
        others.sort(key=lambda app: app["app_label"] == "auth")  # users and groups are needed least often
        return [*([first] if own else []), *others]


def _failures_seen(request: HttpRequest) -> Count:
    rows = in_parts(SchedulerExecution.objects.in_state(State.FAILED), visibility_of(request.user))
    return counts({"failed": rows}, COUNTED)["failed"]


def _name_failures(model: dict[str, Any], waiting: Count) -> None:
    """Add the number of failures to the name of the inbox."""
    if waiting.number > COUNTED:
        waiting = Count(COUNTED, capped=True)
    if waiting:
        model["name"] = _("%(name)s (%(count)s)") % {"name": model["name"], "count": waiting}
