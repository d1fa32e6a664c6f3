"""The admin of this site."""

from __future__ import annotations

from django.contrib.admin.apps import AdminConfig


class CronAdminConfig(AdminConfig):
    """Lets `admin.site` be a `CronAdminSite`."""

    default_site = "scheduling.admin_site.CronAdminSite"
