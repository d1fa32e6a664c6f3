"""docker/requirements.lock has what the image needs, and fits pyproject.toml. `make lock` writes it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, requires, version

from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support import ROOT

LOCK = (ROOT / "docker" / "requirements.lock").read_text()
PINS = {canonicalize_name(name): version for name, version in re.findall(r"^([\w.-]+)==([^\s;]+)", LOCK, re.MULTILINE)}
DOCKERFILE = (ROOT / "Dockerfile").read_text()


def argument(name: str) -> str:
    """The default of a build argument."""
    found = re.search(rf"^ARG {name}=(\S+)$", DOCKERFILE, re.MULTILINE)
    assert found is not None
    return found[1]


def applying(requirements: list[str], extras: frozenset[str]) -> Iterator[Requirement]:
    """The requirements that apply in the image, where these extras are asked for."""
    found = re.match(r"python:(\d+\.\d+)", argument("BASE"))
    assert found is not None
    image = {**default_environment(), "python_version": found[1], "python_full_version": f"{found[1]}.0"}
    for requirement in map(Requirement, requirements):
        marker = requirement.marker
        if marker is None or any(marker.evaluate({**image, "extra": extra}) for extra in extras | {""}):
            yield requirement


def of_the_image() -> list[str]:
    """What pyproject.toml asks for, with the extras of the image."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = argument("EXTRAS").split(",")
    return project["dependencies"] + [text for extra in extras for text in project["optional-dependencies"][extra]]


def test_each_requirement_is_met() -> None:
    needed = list(applying(of_the_image(), frozenset()))
    assert len(needed) > 10
    for requirement in needed:
        pin = PINS.get(canonicalize_name(requirement.name))
        assert pin is not None, f"the lock has no {requirement.name}: run `make lock`"
        assert requirement.specifier.contains(pin), f"the lock has {requirement.name} {pin}: run `make lock`"


def test_what_the_packages_need_is_locked_too() -> None:
    """As far as the environment of these tests has the same versions. pip looks at all when it builds the image."""
    waiting, seen = list(applying(of_the_image(), frozenset())), set()
    while waiting:
        requirement = waiting.pop()
        if (key := (canonicalize_name(requirement.name), frozenset(requirement.extras))) in seen:
            continue
        seen.add(key)
        assert key[0] in PINS, f"the lock has no {key[0]}: run `make lock`"
        with suppress(PackageNotFoundError):  # the drivers
            if version(requirement.name) == PINS[key[0]]:
                waiting += applying(requires(requirement.name) or [], key[1])
    assert len(seen) > 15


def test_each_package_has_a_version_and_hashes() -> None:
    entries = re.split(r"^(?=\S)", re.sub(r"^ *#.*\n", "", LOCK, flags=re.MULTILINE), flags=re.MULTILINE)
    assert len([entry for entry in entries if entry]) == len(PINS) > 15
    for entry in filter(None, entries):
        assert re.match(r"[\w.-]+==\S+", entry), entry
        assert re.search(r"--hash=sha256:[0-9a-f]{64}$", entry, re.MULTILINE), entry


def test_the_image_installs_from_the_lock() -> None:
    locked = "pip install --require-hashes -r requirements.lock"
    assert locked in DOCKERFILE
    assert DOCKERFILE.index("COPY docker/requirements.lock ./") < DOCKERFILE.index(locked)
    assert DOCKERFILE.index(locked) < DOCKERFILE.index('pip install ".[${EXTRAS}]"')
