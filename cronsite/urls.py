"""The URLs of the site. All pages belong to the admin."""

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.urls import path
from django.views.generic import RedirectView


def no_icon(_request: HttpRequest) -> HttpResponse:
    """An empty answer for the favicon, which browsers request with every page. A 404 answer would fill the log."""
    return HttpResponse(status=204)


urlpatterns = [
    path("", RedirectView.as_view(pattern_name="admin:index")),
    path("favicon.ico", no_icon),
    path("admin/", admin.site.urls),
]
