"""A real Prometheus reads a real web server and a real producer, and no counter falls by a cleanup or a restart."""

from __future__ import annotations

import urllib.request
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone as clock

from scheduling.execution.tallying import tally_waiting
from scheduling.metrics.exposition import exposition
from scheduling.models import Attempt, Tally
from tests.execution.retention import make_executions
from tests.factories import SchedulerFactory, TallyTotalFactory, due
from tests.http.client import listens, started_web
from tests.management.running import free_ports
from tests.metrics.prometheus import prometheus
from tests.metrics.scrape import TOKEN, Samples, counters, samples, value
from tests.support import Commands, wait_for

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]

ATTEMPTS = "app_schedule_job_attempts_total"


def scraped(address: str) -> Samples:
    """The counters that a web server shows."""
    request = urllib.request.Request(f"{address}/metrics", headers={"Authorization": f"Bearer {TOKEN}"})  # noqa: S310
    with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310 - http only
        return counters(samples(answer.read().decode()))


@pytest.mark.any_database
def test_prometheus_reads_the_web_server_and_a_producer(commands: Commands, tmp_path: Path) -> None:
    web, of_producer, of_prometheus = free_ports(3)
    TallyTotalFactory(attempts=41, milliseconds=820_000, bucket=3, target='an "odd"\\ name')
    due(SchedulerFactory(schedule="0 0 1 1 *"), clock.now())
    commands.start("run_scheduler", f"--metrics-port={of_producer}")
    jobs: list[dict[str, Any]] = [
        {
            "job_name": "cron",
            "authorization": {"credentials": TOKEN},
            "static_configs": [{"targets": [f"127.0.0.1:{web}"]}],
        },
        {"job_name": "cron-processes", "static_configs": [{"targets": [f"127.0.0.1:{of_producer}"]}]},
    ]
    started_web(commands, web, CRON_METRICS_TOKEN=TOKEN)
    wait_for(lambda: listens(of_producer), "the producer serves its figures")
    with prometheus(tmp_path / "prometheus", of_prometheus, jobs) as asked:
        wait_for(lambda: asked.value("app_schedule_process_claims_total") == 1, "the claim is scraped")
        wait_for(lambda: asked.value(f"sum({ATTEMPTS})") is not None, "the page is scraped")
        targets = {target["labels"]["job"]: (target["health"], target["lastError"]) for target in asked.targets()}
        assert targets == {"cron": ("up", ""), "cron-processes": ("up", "")}
        assert asked.value(f'{ATTEMPTS}{{target="an \\"odd\\"\\\\ name", outcome="succeeded"}}') == 41
        of_target = 'target=~"an.*name"'
        assert asked.value(f"app_schedule_job_duration_seconds_sum{{{of_target}}}") == 820
        assert asked.value(f'app_schedule_job_duration_seconds_bucket{{{of_target}, le="30.0"}}') == 41
        ours = samples(exposition(clock.now())[0].decode())
        assert asked.value('app_schedule_processes{kind="producer", state="alive"}') == value(
            ours, "processes", kind="producer", state="alive"
        )


def test_no_counter_is_smaller_after_a_cleanup_and_a_restart(commands: Commands, free_port: int) -> None:
    def web() -> str:
        return started_web(commands, free_port, CRON_METRICS_TOKEN=TOKEN)

    make_executions("succeeded", 5)
    make_executions("failed", 2)
    for seconds in (0, 60):
        tally_waiting(clock.now() + timedelta(seconds=seconds))
    address = web()
    first = scraped(address)
    assert sum(number for (name, _labels), number in first.items() if name == ATTEMPTS) == 7
    code, said = commands.run("cleanup_executions", "--days=1", CRON_TALLY_DAYS="1")
    assert code == 0, said
    assert Attempt.objects.count() < 7, "history is gone"
    assert not Tally.objects.exists()
    second = scraped(address)
    assert commands.stop(commands.started[0]) == 0
    wait_for(lambda: not listens(free_port), "the port is free")
    third = scraped(web())
    for before, after in ((first, second), (second, third)):
        assert before.keys() <= after.keys()
        assert {key: (number, after[key]) for key, number in before.items() if after[key] < number} == {}
