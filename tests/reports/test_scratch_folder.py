"""The tests check that the temporary files of a workbook are removed, also those of a killed process."""

from __future__ import annotations

import io
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from reports.renderers import XlsxRenderer
from reports.renderers.scratch_folder import PREFIX, remove_left, scratch_folder
from tests.reports.support import rendered
from tests.support import ROOT

WRITER = """
import sys, tempfile
from reports.renderers import XlsxRenderer
with tempfile.TemporaryFile() as file, XlsxRenderer(file, ("a",)) as renderer:
    for number in range(10_000):
        renderer.write((number,))
    print("ready", flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Use a folder of this test as the system's place for temporary files, and return this folder."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def writer(place: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that is writing a workbook."""
    command, environment = [sys.executable, "-c", WRITER], {"TMPDIR": str(place), "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        yield process
        process.kill()


def test_nothing_is_left_when_a_workbook_is_finished(place: Path) -> None:
    renderer = XlsxRenderer(io.BytesIO(), ("a",))
    with renderer:
        renderer.write((1,))
        assert list(place.glob(f"{PREFIX}*/*")) != []
        renderer.finish()
    assert list(place.iterdir()) == []


def test_nothing_is_left_after_an_error(place: Path) -> None:
    class Unprintable:
        def __str__(self) -> str:
            raise RuntimeError("no text")

    with pytest.raises(RuntimeError, match="no text"):
        rendered(XlsxRenderer, ("a",), (1,), (Unprintable(),))
    assert list(place.iterdir()) == []


@pytest.mark.processes
def test_the_folder_of_a_killed_process_is_removed_later(place: Path, writer: subprocess.Popen[bytes]) -> None:
    (folder,) = place.glob(f"{PREFIX}*")
    remove_left(young_seconds=0)
    assert folder.exists(), "its process still runs"
    writer.kill()
    writer.wait(30)
    assert list(folder.iterdir()) != []
    remove_left()
    assert folder.exists(), "a young folder may be without a lock"
    with scratch_folder(young_seconds=0) as own:
        assert list(place.iterdir()) == [own]


def test_only_folders_of_workbooks_are_removed(place: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    for folder in (elsewhere, place / "other", place / f"{PREFIX}left"):
        folder.mkdir()
    (place / f"{PREFIX}link").symlink_to(elsewhere)
    (place / f"{PREFIX}file").touch()
    remove_left(young_seconds=0)
    assert {path.name for path in place.iterdir()} == {"other", f"{PREFIX}link", f"{PREFIX}file"}
    assert elsewhere.exists()
