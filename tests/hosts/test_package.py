"""What is in the package: the files, what an index shows of it, and the links of its page."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest

from tests.hosts.package import Package, run
from tests.support import ROOT

pytestmark = pytest.mark.hosts

PACKAGES = ("cronsite", "reports", "scheduling")
ADDRESS = "https://example.org/team/cronsite"


@pytest.fixture(scope="module")
def metadata(package: Package) -> Message:
    """The wheel's metadata. The payload is the page."""
    with zipfile.ZipFile(package.wheel) as wheel:
        (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
        return Parser().parsestr(wheel.read(name).decode())


def tracked(*folders: str) -> set[str]:
    """The files of these folders that belong to the repository; without a repository, those that are not compiled."""
    if not (ROOT / ".git").exists():
        found = (path for folder in folders for path in (ROOT / folder).rglob("*") if path.is_file())
        return {str(path.relative_to(ROOT)) for path in found if "__pycache__" not in path.parts}
    done = subprocess.run(["git", "ls-files", "-z", *folders], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(done.stdout.split("\0")) - {""}


def test_an_index_accepts_the_package(package: Package) -> None:
    run([sys.executable, "-m", "twine", "check", "--strict", str(package.sdist), str(package.wheel)], ROOT)
    run([sys.executable, "-m", "check_wheel_contents", str(package.wheel)], ROOT)


def test_the_wheel_has_each_file_of_the_packages_and_no_other(package: Package) -> None:
    expected = tracked(*PACKAGES) | {f"scheduling/{name}" for name in tracked("templates")}
    with zipfile.ZipFile(package.wheel) as wheel:
        found = {name for name in wheel.namelist() if ".dist-info/" not in name}
        texts = {name.partition("/")[2] for name in wheel.namelist() if ".dist-info/" in name}
    assert found == expected
    assert {"METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE"} == texts
    assert {f"{name}/py.typed" for name in PACKAGES} <= found
    for suffix in (".html", ".css", ".js", ".py", "migrations/0001_initial.py"):
        assert any(name.endswith(suffix) for name in found), suffix


def test_the_sdist_has_what_the_tests_and_docs_need(package: Package) -> None:
    found = {str(path.relative_to(package.source)) for path in package.source.rglob("*") if path.is_file()}
    assert tracked("docs", "templates", *PACKAGES) <= found
    assert {"hatch_build.py", "pyproject.toml", "README.md", "CHANGELOG.md", "LICENSE"} <= found
    assert not [name for name in found if name.startswith((".ci", ".env", "benchmarks", "var"))]


def test_the_metadata_say_what_the_package_is(metadata: Message) -> None:
    assert metadata["License-Expression"] == "BSD-3-Clause"
    assert metadata["Author"]
    assert len(metadata["Keywords"].split(",")) >= 5
    topics = [classifier.split(" :: ")[0] for classifier in metadata.get_all("Classifier", [])]
    assert {"Development Status", "Framework", "Intended Audience", "Operating System", "Topic", "Typing"} <= set(
        topics
    )
    assert metadata["Description-Content-Type"] == "text/markdown"
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert set(scripts) == {"cronsite"}


def test_versions_are_claimed_only_where_the_tests_ran(metadata: Message) -> None:
    """docs/operations.md has the versions in a table."""
    rows = re.findall(
        r"^\| (Python|Django) \|[^|]*\| ([^|]*) \|$", (ROOT / "docs/operations.md").read_text(), re.MULTILINE
    )
    ran = {name: set(re.findall(r"\d+\.\d+", versions)) for name, versions in rows}
    assert set(ran) == {"Python", "Django"}
    for name, prefix in (("Python", "Programming Language :: Python :: "), ("Django", "Framework :: Django :: ")):
        claims = [
            claim.removeprefix(prefix) for claim in metadata.get_all("Classifier", []) if claim.startswith(prefix)
        ]
        assert {claim for claim in claims if "." in claim} == ran[name], name


def links(text: str) -> list[str]:
    """The targets of a page's links and pictures."""
    return re.findall(r"\]\(([^)\s]+)\)", text)


def test_the_page_has_no_link_that_leads_nowhere(metadata: Message) -> None:
    page = str(metadata.get_payload())
    assert [target for target in links(page) if not target.startswith("https://")] == []
    assert "docs/handlers.md: workers, reports" in page
    assert metadata.get_all("Project-URL", []) == []
    assert "![" not in page


def test_with_an_address_all_links_are_absolute(package: Package, tmp_path: Path) -> None:
    pyproject = (package.source / "pyproject.toml").read_text()
    assert pyproject.count('repository = ""') == 1
    for name in ("cronsite", "reports", "scheduling", "templates", "hatch_build.py", "README.md", "LICENSE"):
        (tmp_path / name).symlink_to(package.source / name)
    (tmp_path / "pyproject.toml").write_text(pyproject.replace('repository = ""', f'repository = "{ADDRESS}/"'))
    said = run([sys.executable, "-m", "hatchling", "metadata"], tmp_path)
    found = json.loads(said)
    assert found["urls"]["Source"] == ADDRESS
    own = links((ROOT / "README.md").read_text())
    for link, target in zip(links(found["readme"]["text"]), own, strict=True):
        file = re.sub(rf"^{ADDRESS}/(blob|raw)/main/", "", link).partition("#")[0]
        assert link.startswith("https://"), target
        assert link == target or (ROOT / file).exists(), link
