"""The tests check docker-compose.yml, Dockerfile and .env.example without containers."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.core.management import get_commands, load_command_class

from cronsite.settings import database
from scheduling.conf import Conf
from scheduling.consumer.slots import TERM_GRACE_SECONDS
from tests import compose
from tests.support import ROOT

EXAMPLE = ROOT / ".env.example"
DOCKERFILE = (ROOT / "Dockerfile").read_text()
FINAL = DOCKERFILE[DOCKERFILE.rindex("\nFROM ") :]
"""The text of the last stage in the Dockerfile. This stage makes the image."""

COMPOSE_ONLY = {
    "CRON_IMAGE",
    "MYSQL_PASSWORD",
    "RABBITMQ_MANAGEMENT_PORT",
    "RABBITMQ_PASSWORD",
    "WEB_ADDRESS",
    "WEB_PORT",
    "WORKER_CONCURRENCY",
    "WORKER_STOP_PERIOD",
    "SERVICE_SLOTS",
}
"""Variables that only docker-compose.yml uses, so they are not in docs/configuration.md."""


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    """Return all services of docker-compose.yml."""
    found: dict[str, Any] = compose.load()["services"]
    return found


def parse(words: list[str]) -> None:
    """Parse the words of a management command. An unknown command or argument fails the test."""
    name, *arguments = words
    assert name in get_commands(), f"there is no command {name!r}"
    load_command_class(get_commands()[name], name).create_parser("cronsite", name).parse_args(arguments)


def test_every_command_parses(services: dict[str, Any]) -> None:
    for service in compose.ours(services).values():
        parse(compose.command(service))


@pytest.mark.processes
def test_every_command_starts(services: dict[str, Any]) -> None:
    names = {compose.command(service)[0] for service in compose.ours(services).values()} | {"health", "doctor"}
    for name in sorted(names):
        shown = subprocess.run(
            [sys.executable, "manage.py", name, "--help"], cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert shown.returncode == 0, shown.stderr
        assert f"{name} [-h]" in shown.stdout


def test_every_probe_parses(services: dict[str, Any]) -> None:
    kinds = {}
    for name, service in compose.ours(services).items():
        if name != "migrate":
            form, script, *words = service["healthcheck"]["test"]
            assert (form, script) == ("CMD", "cronsite")
            parse(words)
            kinds[name] = words[1].removeprefix("--kind=")
    assert kinds == {"web": "web", "producer": "producer", "worker": "consumer", "worker-standalone": "consumer"}


def test_services_wait_for_what_they_need(services: dict[str, Any]) -> None:
    order = compose.order(services)  # raises CycleError if two services wait for each other
    assert set(order) == set(services), "a service waits for one that is not there"
    for name, service in services.items():
        for needed, how in service.get("depends_on", {}).items():
            if how["condition"] == "service_healthy":
                assert "healthcheck" in services[needed], f"{name} waits for {needed}, which has no health check"
            else:
                assert how["condition"] == "service_completed_successfully"
                assert services[needed]["restart"] == "no", f"{needed} is to end"
    assert set(services["migrate"]["depends_on"]) == {"mysql"}
    for name in set(compose.ours(services)) - {"migrate"}:
        assert set(services[name]["depends_on"]) == {"mysql", "rabbitmq", "migrate"}


def test_consumers_have_time_to_drain(services: dict[str, Any]) -> None:
    for name in ("worker", "worker-standalone"):
        assert compose.seconds(services[name]["stop_grace_period"]) >= Conf().grace_seconds + TERM_GRACE_SECONDS + 5
        assert services[name]["init"] is True


def test_two_producers_and_consumers_that_scale(services: dict[str, Any]) -> None:
    assert services["producer"]["deploy"]["replicas"] == 2
    for name in ("worker", "worker-standalone"):
        assert not {"ports", "container_name", "hostname"} & set(services[name])


def test_ports_are_open_only_on_this_machine(services: dict[str, Any]) -> None:
    ports = {
        name: [compose.resolved(port) for port in service["ports"]]
        for name, service in services.items()
        if "ports" in service
    }
    assert ports == {"web": ["127.0.0.1:8000:8000"], "rabbitmq": ["127.0.0.1:15672:15672"]}
    assert "--port=8000" in compose.command(services["web"])
    assert "EXPOSE 8000" in FINAL


def test_every_service_restarts_and_limits_its_log(services: dict[str, Any]) -> None:
    for name, service in services.items():
        assert service["restart"] == ("no" if name == "migrate" else "unless-stopped")
        assert set(service["logging"]["options"]) == {"max-size", "max-file"}


def test_volumes_are_declared_and_fit_the_image(services: dict[str, Any]) -> None:
    mounts = {volume.split(":")[0] for service in services.values() for volume in service.get("volumes", ())}
    assert mounts == set(compose.load()["volumes"])
    folder = re.search(r"DATA_DIR=(\S+)", FINAL)
    assert folder is not None
    assert f"media:{folder.group(1)}/media" in services["worker"]["volumes"]
    assert f"{folder.group(1)}/media" in FINAL.split("install -d -o cron")[1].splitlines()[0]


def test_every_variable_is_documented() -> None:
    example = EXAMPLE.read_text()
    offered = set(re.findall(r"^#?([A-Z][A-Z_]+)=", example, re.MULTILINE))
    used = set(re.findall(r"(?<!\$)\$\{(\w+)", compose.FILE.read_text()))
    assert used <= offered, "docker-compose.yml asks for names that .env.example does not offer"
    documented = (ROOT / "docs" / "configuration.md").read_text()
    for name in offered - COMPOSE_ONLY:
        assert f"`{name}`" in documented, f"{name} is not in docs/configuration.md"
    assert not COMPOSE_ONLY - offered


def test_the_examples_of_percent_encoding_are_right() -> None:
    addresses = dict(re.findall(r"^#(DATABASE_URL|BROKER_URL)=(\S+%23\S*)$", EXAMPLE.read_text(), re.MULTILINE))
    found = database(addresses["DATABASE_URL"])
    assert (found["USER"], found["PASSWORD"], found["HOST"], found["NAME"]) == ("cron", "p#ss?word", "mysql", "cron")
    assert "p%23ss@" in addresses["BROKER_URL"]


def test_secrets_stay_out_of_the_image() -> None:
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]
    assert rules[0] == "*"
    assert not any(".env" in rule or rule in {"!.", "!*"} for rule in rules[1:])
    copied = {
        name for line in re.findall(r"^COPY (?!--from)(.*) \S+$", DOCKERFILE, re.MULTILINE) for name in line.split()
    }
    assert copied == {rule[1:] for rule in rules if rule.startswith("!")}
    assert all((ROOT / name).exists() for name in copied)


def test_the_image_has_an_entrypoint_and_a_user() -> None:
    forms = dict(re.findall(r"^(ENTRYPOINT|CMD) (\[.*\])$", FINAL, re.MULTILINE))
    assert json.loads(forms["ENTRYPOINT"]) == ["cronsite"]  # in the JSON form, signals reach the process directly
    parse(json.loads(forms["CMD"]))
    assert re.search(r"^USER [1-9]\d*:[1-9]\d*$", FINAL, re.MULTILINE)
    assert "STOPSIGNAL SIGTERM" in FINAL
    assert "HEALTHCHECK" not in DOCKERFILE
    assert not re.search(r"gcc|-dev\b|pkg-config", FINAL)


def test_docker_compose_accepts_the_file(tmp_path: Path) -> None:
    docker = shutil.which("docker")
    if not docker or subprocess.run([docker, "compose", "version"], capture_output=True, check=False).returncode:
        pytest.skip("docker compose is not installed here")
    shutil.copy(compose.FILE, tmp_path)
    unfilled = EXAMPLE.read_text()
    filled = re.sub(r"^(SECRET_KEY|MYSQL_PASSWORD|RABBITMQ_PASSWORD)=$", r"\1=sesame", unfilled, flags=re.MULTILINE)
    for text, code in ((filled, 0), (unfilled, 1)):
        (tmp_path / ".env").write_text(text)
        shown = subprocess.run(
            [docker, "compose", "config", "--quiet"], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert bool(shown.returncode) is bool(code), shown.stderr
    assert "in .env" in shown.stderr
