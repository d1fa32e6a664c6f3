"""The URLs of the site. All pages belong to the admin."""

from functools import cache
from importlib.resources import files

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.urls import include, path
from django.views.generic import RedirectView

admin.autodiscover()


@cache
def _icon() -> bytes:
    return (files("scheduling") / "static/scheduling/favicon.ico").read_bytes()


def icon(_request: HttpRequest) -> HttpResponse:
    """The site's icon. Browsers ask for this address with every page."""
    return HttpResponse(_icon(), content_type="image/x-icon", headers={"Cache-Control": "max-age=86400"})


handler403 = "cronsite.errors.forbidden"
handler404 = "cronsite.errors.not_found"

urlpatterns = [
    path("", RedirectView.as_view(pattern_name="admin:index")),
    path("favicon.ico", icon),
    path("", include("scheduling.urls")),
    path("admin/", admin.site.urls),
    path("cron/", include("scheduling.http.urls")),
]
