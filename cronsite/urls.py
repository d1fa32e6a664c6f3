"""Addresses: the admin is the whole site."""

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.urls import path
from django.views.generic import RedirectView


def no_icon(_request: HttpRequest) -> HttpResponse:
    """Browsers ask for one on every page; an empty answer keeps their console and our log clean."""
    return HttpResponse(status=204)


urlpatterns = [
    path("", RedirectView.as_view(pattern_name="admin:index")),
    path("favicon.ico", no_icon),
    path("admin/", admin.site.urls),
]
