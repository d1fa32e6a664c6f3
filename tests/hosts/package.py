"""Builds the package once for all tests: the sdist from the checkout, and the wheel from that sdist.

`python -m tests.hosts.package FOLDER` builds it for an index.
"""

from __future__ import annotations

import fcntl
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.support import ROOT


@dataclass(frozen=True)
class Package:
    """The files that an index gets, and the unpacked sdist from which the wheel was built."""

    sdist: Path
    wheel: Path
    source: Path


def built(folder: Path) -> Package:
    """Build the package in this folder, or return what another process has built there."""
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "done").exists():
            build(folder, folder / "unpacked")
            (folder / "done").touch()
    return Package(*folder.glob("*.tar.gz"), *folder.glob("*.whl"), *(folder / "unpacked").iterdir())


def build(folder: Path, unpacked: Path) -> None:
    """Build the sdist, unpack it, and build the wheel from it."""
    _hatchling("sdist", ROOT, folder)
    (sdist,) = folder.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(unpacked, filter="data")
    _hatchling("wheel", *unpacked.iterdir(), folder)


def _hatchling(target: str, source: Path, folder: Path) -> None:
    run([sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", str(folder.resolve())], source)


def run(command: list[str], folder: Path, environment: dict[str, str] | None = None) -> str:
    """Run a program to its end and return its output, standard error included. A failure fails the test."""
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}"
    return done.stdout


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        build(Path(sys.argv[1]), Path(temporary))
