"""Makes virtual environments with the built wheel, for hosts.

The wheel is installed by pip. What it needs is linked from the environment of these tests: the packages that the
wheel's metadata ask for, and those that these ask for in turn, and no others. So nothing is downloaded, and a package
that the metadata forget is missing in the host. `downloaded` lets pip choose and download everything instead.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution, distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.hosts.package import Package, run

PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check")

BY_MAKE = pytest.mark.skipif(
    not os.environ.get("TEST_HOSTS_DOWNLOAD"), reason="pip downloads what this host needs: make test-hosts"
)


def linked(folder: Path, package: Package, extras: str = "") -> Path:
    """Make an environment whose packages, except the wheel, are links. Return its interpreter.

    Args:
        extras: the names of extras, separated by commas.
    """
    python = _empty(folder, sys.executable)
    run([*PIP, "--python", str(python), "install", "--quiet", "--no-deps", "--no-index", str(package.wheel)], folder)
    (site,) = folder.glob("lib/python3*/site-packages")
    (own,) = (found for found in distributions(path=[str(site)]) if found.name == "cronsite")
    for needed in _closure(own, frozenset(extras.split(","))):
        for name in sorted({file.parts[0] for file in needed.files or ()} - {"..", "__pycache__"}):
            if not (site / name).exists():
                (site / name).symlink_to(str(needed.locate_file(name)))
    run([*PIP, "--python", str(python), "check"], folder)
    return python


def downloaded(folder: Path, python: str, *requirements: str) -> Path:
    """Make an environment for this interpreter, into which pip installs the requirements. Return its interpreter."""
    made = _empty(folder, python)
    run([*PIP, "--python", str(made), "install", "--quiet", *requirements], folder)
    return made


def _empty(folder: Path, python: str) -> Path:
    folder.mkdir()
    run([python, "-m", "venv", "--without-pip", str(folder)], folder)
    return folder / "bin" / "python"


def _closure(package: Distribution, extras: frozenset[str]) -> Iterator[Distribution]:
    """Each package that `package` with these extras needs, directly or not."""
    waiting, seen = [(package, extras)], set()
    while waiting:
        found, wanted = waiting.pop()
        for text in found.requires or ():
            requirement = Requirement(text)
            key = (canonicalize_name(requirement.name), frozenset(requirement.extras))
            if key in seen or not _applies(requirement, wanted):
                continue
            seen.add(key)
            needed = distribution(requirement.name)
            waiting.append((needed, key[1]))
            yield needed


def _applies(requirement: Requirement, extras: frozenset[str]) -> bool:
    marker = requirement.marker
    return marker is None or any(marker.evaluate({"extra": extra}) for extra in extras | {""})
