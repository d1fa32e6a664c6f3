"""The ready-made site from the wheel: `cronsite` in an empty folder."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hosts.environments import linked
from tests.hosts.package import Package
from tests.hosts.project import Project
from tests.hosts.visitor import Visitor

pytestmark = [pytest.mark.processes, pytest.mark.hosts]

FOREIGN = "from another package"


@pytest.fixture(scope="module")
def command(package: Package, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The installed command. Beside its packages stands the folder `templates` of another package."""
    environment = tmp_path_factory.mktemp("site") / "environment"
    python = linked(environment, package, "site")
    (packages,) = environment.glob("lib/python3*/site-packages")
    for name in ("admin/base_site.html", "admin/scheduling/dashboard/page.html", "admin/login.html"):
        (packages / "templates" / name).parent.mkdir(parents=True, exist_ok=True)
        (packages / "templates" / name).write_text(FOREIGN)
    return str(python.with_name("cronsite"))


@pytest.fixture
def site(command: str, tmp_path: Path) -> Iterator[Project]:
    """The site in an empty folder."""
    made = Project(tmp_path / "empty", (command,))
    yield made
    made.kill()


def test_the_site_runs_in_an_empty_folder(site: Project, free_port: int) -> None:
    up = site.start("up", "--no-demo", "--port", str(free_port))
    said = site.until(up, "Ctrl-C stops everything")
    (user,), (password,) = re.findall(r"User +(\S+)", said), re.findall(r"Password +(\S+)", said)
    visitor = Visitor(free_port)
    dashboard = visitor.sign_in(user, password)
    assert FOREIGN not in dashboard.text
    assert dashboard.soup.select(".sch-dashboard, #content-main"), dashboard.said()
    style = dashboard.soup.select_one('link[href*="scheduling/"]')
    assert style is not None
    assert visitor.get(str(style["href"])).text
    site.manage("doctor")
    assert site.stop() == [0], site.log(up)


def test_migrate_in_an_empty_folder(site: Project) -> None:
    """Without a secret key it says what is missing; with one it makes the folder and the tables."""
    asked = _migrate(site)
    assert asked.returncode == 1
    assert "SECRET_KEY is empty. Set it in the environment, or run" in asked.stderr
    assert "Traceback" not in asked.stderr

    site.environment["SECRET_KEY"] = "a key of the environment"
    done = _migrate(site)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Applying scheduling.0001_initial" in done.stdout
    assert list(site.folder.rglob("db.sqlite3"))


def _migrate(site: Project) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*site.command, "migrate"], cwd=site.folder, env=site.environment, capture_output=True, text=True, check=False
    )
