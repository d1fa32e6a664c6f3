"""`/processes` and `/health`: what works, and what is wrong."""

from __future__ import annotations

from collections.abc import Sequence

from django.http import HttpRequest, HttpResponse
from django.utils import timezone as clock
from ninja import Router

from scheduling.core.text import visible_text
from scheduling.http.answers import answer, listing
from scheduling.http.auth import caller_of
from scheduling.http.parameters import PROBLEMS, Page
from scheduling.http.schemas import FindingShape, HealthShape, Listing, ProcessShape
from scheduling.models import Process
from scheduling.monitoring.findings.areas import problems
from scheduling.monitoring.findings.finding import worst
from scheduling.monitoring.findings.present import Present
from scheduling.monitoring.findings.watched import failed
from scheduling.operations.shaping import page_keys

router = Router(tags=["installation"])

VIEW_PROCESSES = "scheduling.view_process"
VIEW_HEALTH = "scheduling.view_dashboard"


@router.get("/processes", response={200: Listing[ProcessShape], **PROBLEMS}, summary="List processes")
def list_processes(request: HttpRequest, page: Page) -> HttpResponse:
    """Producers and consumers, the newest first, also those that have stopped."""
    caller_of(request).must(VIEW_PROCESSES)
    keys, following = page_keys(Process.objects.all(), page.after, page.limit, descending=True)
    now = clock.now()

    def bulk(some: Sequence[int]) -> dict[int, ProcessShape]:
        rows = Process.objects.in_bulk(some)
        return {
            pk: ProcessShape(
                id=pk,
                kind=row.kind,
                container_id=visible_text(row.container_id),
                state="stopped" if row.stopped_at else "alive" if row.is_alive(now) else "silent",
                started_at=row.started_at,
                heartbeat_at=row.heartbeat_at,
                stopped_at=row.stopped_at,
            )
            for pk, row in rows.items()
        }

    return listing(keys, following, bulk)


@router.get("/health", response={200: HealthShape, **PROBLEMS}, summary="What is wrong")
def read_health(request: HttpRequest) -> HttpResponse:
    """The findings of the dashboard. The status is 200 also if something is wrong: compare `level`."""
    caller = caller_of(request)
    caller.must(VIEW_HEALTH)
    present = Present(clock.now(), caller.visible)
    found = problems(present)
    shape = HealthShape(
        level=str(worst(found)),
        producers=sum(row.kind == Process.Kind.PRODUCER for row in present.alive),
        consumers=sum(row.kind == Process.Kind.CONSUMER for row in present.alive),
        failed=present.count(failed).number,
        findings=[
            FindingShape(check=one.check, level=str(one.level), seen=visible_text(one.in_full), advice=one.advice)
            for one in found
        ],
    )
    return answer(shape)
