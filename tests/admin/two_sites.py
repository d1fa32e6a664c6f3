"""The URLs of a project with two admin sites: the default site, and the site `ops` with the same pages."""

from __future__ import annotations

from django.contrib import admin
from django.urls import path

ops = admin.AdminSite(name="ops")
for model, model_admin in admin.site._registry.items():
    ops.register(model, type(model_admin))

urlpatterns = [path("admin/", admin.site.urls), path("ops/", ops.urls)]
