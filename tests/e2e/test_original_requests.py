"""The requests of the documents that the original contract comes from, sent with curl as they stand there."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from reports.models import Report
from scheduling.models import SchedulerExecution
from scheduling.operations.tokens import make_token
from tests.factories import UserFactory
from tests.http.client import started_web
from tests.support import Commands, wait_for

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]

CURL = shutil.which("curl")


class Curl:
    """Sends requests with curl."""

    def __init__(self, site: str, secret: str) -> None:
        self.site, self.secret = site, secret

    def __call__(self, method: str, path: str, body: str = "", *options: str) -> tuple[int, Any]:
        """Returns the status and the JSON of the answer."""
        assert CURL is not None, "curl is not installed"
        data = ["-H", "Content-Type: application/json", "-d", body] if body else []
        command = [CURL, "-s", "-X", method, "-w", "\n%{http_code}", "-H", f"Authorization: Bearer {self.secret}"]
        done = subprocess.run(
            [*command, *data, *options, f"{self.site}{path}"], capture_output=True, text=True, timeout=90, check=True
        )
        text, _line, status = done.stdout.rpartition("\n")
        return int(status), json.loads(text) if text else None


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Provide the folder in which the report finds out whether the token service is down. It is."""
    folder = tmp_path / "marks"
    folder.mkdir()
    (folder / "down").touch()
    return folder


def stored_report(directory: Path) -> Report:
    """The row of the report, which a migration may have made."""
    params = {"params": {"directory": str(directory)}}
    return Report.objects.update_or_create(controller="RefreshUserToken", defaults=params)[0]


def test_the_requests_of_the_documents(commands: Commands, free_port: int, directory: Path) -> None:
    report = stored_report(directory)
    commands.environment["CRON_MAX_RETRIES"] = "0"
    site = started_web(commands, free_port)
    commands.ready(commands.start("run_worker"))
    _token, secret = make_token(UserFactory(superuser=True), "curl")
    curl = Curl(f"{site}/cron", secret)

    # [Web Application] -> POST /schedulers, with the columns of the example row. Its id is the database's choice.
    row = {"id": 16, "schedule": "0 8 * * *", "report_id": report.pk, "params": {}, "status": True}
    status, made = curl("POST", "/schedulers", json.dumps(row))
    assert status == 201
    assert {name: made[name] for name in row if name != "id"} == {k: v for k, v in row.items() if k != "id"}

    # It fails for good, and waits in the inbox.
    status, started = curl("POST", f"/schedulers/{made['id']}/run")
    assert status == 202
    wait_for(lambda: curl("GET", f"/executions/{started['id']}")[1]["is_over"], "it is over")
    assert [each["id"] for each in curl("GET", "/failed")[1]["items"]] == [started["id"]]

    # "Option 3: Manually Execute Report", while the service is down and when it is back.
    generate = """{
  "controller": "RefreshUserToken",
  "options_interface": {
    "delivery": {
      "instant": true
    }
  }
}"""
    status, found = curl("POST", "/reports/generate", generate)
    assert (status, found["state"], found["error_class"]) == (200, "failed", "ConnectionError")
    (directory / "down").unlink()
    status, found = curl("POST", "/reports/generate", generate)
    assert (status, found["state"]) == (200, "succeeded")
    [file] = found["artefacts"]
    assert file["is_result"]
    downloaded = subprocess.run(
        [str(CURL), "-s", "-H", f"Authorization: Bearer {secret}",
         f"{site}/cron/executions/{found['id']}/artefacts/{file['id']}"],
        capture_output=True, text=True, timeout=60, check=True,
    ).stdout  # fmt: skip
    assert "ann" in downloaded

    # In the background, it is answered at once with the address of the execution.
    status, started = curl("POST", "/reports/generate", generate.replace("true", "false"))
    assert (status, started["state"]) == (202, "queued")
    wait_for(lambda: SchedulerExecution.objects.get(pk=started["id"]).state == "succeeded", "it succeeds")
    assert curl("GET", started["address"].removeprefix("/cron"))[1]["state"] == "succeeded"


def test_a_report_that_takes_too_long_is_answered_with_its_address(
    commands: Commands, free_port: int, directory: Path
) -> None:
    stored_report(directory)
    site = started_web(commands, free_port, CRON_API_INSTANT_SECONDS="1")  # and no consumer
    _token, secret = make_token(UserFactory(superuser=True), "curl")
    body = '{"controller": "RefreshUserToken", "options_interface": {"delivery": {"instant": true}}}'
    curl = Curl(f"{site}/cron", secret)
    status, started = curl("POST", "/reports/generate", body, "-H", "Idempotency-Key: one")
    assert (status, started["state"]) == (202, "queued")
    assert curl("POST", "/reports/generate", body, "-H", "Idempotency-Key: one")[1] == started
    assert SchedulerExecution.objects.count() == 1
