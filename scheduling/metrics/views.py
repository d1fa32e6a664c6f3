"""The pages /metrics, /healthz and /readyz."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.utils import timezone as clock
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from scheduling.conf import get_conf
from scheduling.core.setting_values import ConfError
from scheduling.logs import get_logger
from scheduling.metrics.access import Access, access
from scheduling.metrics.readiness import readiness
from scheduling.processes.database import DATABASE_ERRORS

log = get_logger(__name__)

TEXT = "text/plain; charset=utf-8"


@never_cache
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """The metrics of the installation, for all groups of users. 404 while no setting switches them on."""
    allowed = access(request, get_conf())
    if allowed is Access.OFF:
        raise Http404
    if allowed is not Access.ALLOWED:
        headers = {"WWW-Authenticate": 'Bearer realm="metrics"'} if allowed is Access.UNAUTHORIZED else {}
        return HttpResponse("Not allowed.\n", status=allowed.value, content_type=TEXT, headers=headers)
    try:
        from scheduling.metrics.exposition import exposition
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith("prometheus_client"):
            raise
        said = "The metrics need prometheus-client: pip install 'cronsite[metrics]'\n"
        return HttpResponse(said, status=503, content_type=TEXT)
    try:
        body, content_type = exposition(clock.now(), request.headers.get("Accept", ""))
    except DATABASE_ERRORS as error:
        log.warning("The metrics cannot be read: %s", error)
        return HttpResponse("The database cannot be read.\n", status=503, content_type=TEXT)
    return HttpResponse(body, content_type=content_type)


@never_cache
@require_safe
def healthz(_request: HttpRequest) -> HttpResponse:
    """200: the web process answers. The database is not asked, because a restart would not mend it."""
    return HttpResponse("ok\n", content_type=TEXT)


@never_cache
@require_safe
def readyz(request: HttpRequest) -> HttpResponse:
    """200 if the process can serve, else 503. Only those who may read the metrics are told why."""
    problem = readiness.problem()
    if not problem:
        return HttpResponse("ready\n", content_type=TEXT)
    try:
        is_told = access(request, get_conf()) is Access.ALLOWED
    except ConfError:
        is_told = False
    return HttpResponse(f"not ready\n{problem if is_told else ''}\n".strip(), status=503, content_type=TEXT)
