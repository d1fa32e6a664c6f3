"""The HTTP API. It needs the extra `[api]`. A project mounts it: `path("cron/", include("scheduling.http.urls"))`."""
