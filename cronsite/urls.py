"""The URLs of the site. All pages belong to the admin."""

from django.contrib import admin
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.templatetags.static import static
from django.urls import path
from django.views.generic import RedirectView


def icon(_request: HttpRequest) -> HttpResponse:
    """Leads to the site's icon. Browsers ask for this address with every page."""
    return HttpResponseRedirect(static("scheduling/favicon.ico"))


urlpatterns = [
    path("", RedirectView.as_view(pattern_name="admin:index")),
    path("favicon.ico", icon),
    path("admin/", admin.site.urls),
]
