"""The addresses for Prometheus and load balancers: `path("", include("scheduling.urls"))`."""

from __future__ import annotations

from django.urls import include, path

from scheduling.metrics.views import healthz, metrics, readyz

_patterns = [
    path("metrics", metrics, name="metrics"),
    path("healthz", healthz, name="healthz"),
    path("readyz", readyz, name="readyz"),
]
urlpatterns = [path("", include((_patterns, "cron_metrics")))]
