"""The files of docs/deployment/ start commands that exist, and give runs enough time to end."""

from __future__ import annotations

import configparser
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.management import get_commands, load_command_class

from scheduling.conf import Conf
from tests.docs.pages import DOCS

FOLDER = DOCS / "deployment"
PAGE = (DOCS / "deployment.md").read_text()
LEAST = Conf().grace_seconds + 15


def unit(name: str) -> configparser.RawConfigParser:
    parser = configparser.RawConfigParser()
    parser.optionxform = str  # type: ignore[assignment]
    parser.read(FOLDER / name)
    return parser


def started() -> Iterator[tuple[str, list[str]]]:
    """Where a command stands, and its words behind `manage.py`."""
    for name in ("cron-producer.service", "cron-consumer.service"):
        yield name, shlex.split(unit(name)["Service"]["ExecStart"])[2:]
    for name, service in yaml.safe_load((FOLDER / "compose.yml").read_text())["services"].items():
        yield name, service["command"][2:]
        if "healthcheck" in service:
            yield f"{name}, health", service["healthcheck"]["test"][3:]
    for name, container in containers().items():
        yield name, container["command"][2:]
        if "livenessProbe" in container:
            yield f"{name}, probe", container["livenessProbe"]["exec"]["command"][2:]


def documents() -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((FOLDER / "kubernetes.yml").read_text()))


def containers() -> dict[str, Any]:
    """The container of each Job and Deployment."""
    return {one["metadata"]["name"]: one["spec"]["template"]["spec"]["containers"][0] for one in documents()}


@pytest.mark.parametrize(("where", "words"), list(started()))
def test_each_command_exists_with_its_options(where: str, words: list[str]) -> None:
    command, *options = words
    parser = load_command_class(get_commands()[command], command).create_parser("manage.py", command)
    parser.parse_args(options)


def test_runs_have_time_to_end() -> None:
    compose = yaml.safe_load((FOLDER / "compose.yml").read_text())["services"]
    pods = {one["metadata"]["name"]: one["spec"]["template"]["spec"] for one in documents()}
    seconds = [
        int(unit("cron-consumer.service")["Service"]["TimeoutStopSec"]),
        int(compose["cron-consumer"]["stop_grace_period"].removesuffix("s")),
        pods["cron-consumer"]["terminationGracePeriodSeconds"],
    ]
    assert min(seconds) >= LEAST
    assert f"`CRON_GRACE_SECONDS` ({Conf().grace_seconds}) plus 15 s" in PAGE


def test_a_deployment_selects_its_own_pods() -> None:
    for one in documents():
        if one["kind"] == "Deployment":
            labels = one["spec"]["template"]["metadata"]["labels"]
            assert one["spec"]["selector"]["matchLabels"] == labels == {"app": one["metadata"]["name"]}


def test_systemd_reads_the_units(tmp_path: Path) -> None:
    if not shutil.which("systemd-analyze"):
        pytest.skip("no systemd-analyze")
    for path in FOLDER.glob("*.service"):
        (tmp_path / path.name).write_text(path.read_text().replace("/srv/shop/.venv/bin/python", "/bin/true"))
    units = sorted(str(path) for path in tmp_path.iterdir())
    done = subprocess.run(["systemd-analyze", "verify", *units], check=False, capture_output=True, text=True)
    told = [line for line in done.stderr.splitlines() if "cron-" in line]
    assert told == []


def test_the_page_names_each_file() -> None:
    assert [path.name for path in FOLDER.iterdir() if f"deployment/{path.name}" not in PAGE] == []
