"""The admin of this site."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib import admin
from django.contrib.admin.apps import SimpleAdminConfig
from django.core.checks import CheckMessage, Tags, register


def load_pages(**_options: Any) -> Sequence[CheckMessage]:
    """Import the modules with the admin's pages, so that Django's checks of the admin find them."""
    admin.autodiscover()
    return []


class CronAdminConfig(SimpleAdminConfig):
    """Lets `admin.site` be a `CronAdminSite`.

    The pages are imported with the URLs. So producers and consumers, which answer no requests, do not keep them in
    memory.
    """

    default_site = "scheduling.admin_site.CronAdminSite"

    def ready(self) -> None:
        """Register the checks of the admin. Checks run in the order in which they were registered."""
        register(load_pages, Tags.admin)
        super().ready()
