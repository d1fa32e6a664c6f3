"""A process sees when a file of the code that it has loaded has changed. The tests change real files."""

from __future__ import annotations

import importlib
import os
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import pytest

from scheduling.processes import loaded_code
from scheduling.processes.loaded_code import LOOK_SECONDS, LoadedCode
from scheduling.processes.renewal import Renewal
from scheduling.processes.shutdown import ShutdownRequest

SOON = LOOK_SECONDS


class Module(NamedTuple):
    """An imported module, and its file."""

    name: str
    path: Path

    def write(self, text: str, seconds: float = 0.0) -> None:
        """Change the file. Its mtime becomes the present time plus `seconds`."""
        self.path.write_text(text)
        at = time.time() + seconds
        os.utime(self.path, (at, at))


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Module]:
    """A module that was written a minute ago and is imported."""
    found = Module("loaded_code_shop", tmp_path / "loaded_code_shop.py")
    found.write("PRICE = 1\n", -60)
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.import_module(found.name)
    yield found
    sys.modules.pop(found.name, None)


def test_a_change_is_seen_with_its_time(module: Module) -> None:
    code = LoadedCode()
    assert not code.look(100.0)
    before = datetime.now(UTC)
    module.write("PRICE = 2\n")
    assert code.look(100.0 + SOON)
    assert code.changed == [str(module.path)]
    assert code.loaded_at is not None
    assert code.changed_at is not None
    assert abs((code.changed_at - before).total_seconds()) < 60
    assert code.changed_at <= datetime.now(UTC)


def test_files_are_looked_at_only_now_and_then(module: Module) -> None:
    code = LoadedCode()
    assert not code.look(100.0)
    module.write("PRICE = 2\n")
    assert not code.look(100.0 + SOON / 2)
    assert code.look(100.0 + SOON)


def test_a_file_that_is_put_back_is_no_change(module: Module) -> None:
    code = LoadedCode()
    stat = module.path.stat()
    module.write("PRICE = 2\n")
    assert code.look(100.0)
    module.path.write_text("PRICE = 1\n")
    os.utime(module.path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert not code.look(100.0 + SOON)


def test_an_older_version_is_a_change_too(module: Module) -> None:
    """A copy of a release may keep the times of its files."""
    code = LoadedCode()
    module.write("PRICE = 0\n", -3600)
    assert code.look(100.0)


def test_a_file_of_the_future_does_not_nag_for_ever(module: Module) -> None:
    module.write("PRICE = 1\n", 10**6)
    code = LoadedCode()
    assert not code.look(100.0)
    assert code.loaded_at is not None
    assert code.loaded_at <= datetime.now(UTC)
    module.write("PRICE = 2\n", 10**7)
    assert code.look(100.0 + SOON)
    assert code.changed_at is not None
    assert code.changed_at <= datetime.now(UTC)
    assert not LoadedCode().look(100.0)  # the next process has loaded it


def test_a_file_with_a_time_that_is_no_date_breaks_nothing(module: Module) -> None:
    code = LoadedCode()
    os.utime(module.path, (-(10**9), -(10**9)))
    assert code.look(100.0)
    assert LoadedCode().loaded_at is not None


@pytest.mark.parametrize("way", ["deleted", "its folder is closed", "a folder stands there"])
def test_a_file_that_cannot_be_read_is_no_change(module: Module, way: str) -> None:
    code = LoadedCode()
    if way == "deleted":
        module.path.unlink()
    elif way == "its folder is closed":
        module.path.parent.rename(module.path.parent.with_name("gone"))
    else:
        module.path.unlink()
        module.path.mkdir()
        os.utime(module.path, (1, 1))
        assert code.look(100.0)  # something stands there, so it has changed
        assert "loaded_code_shop.py" in code.problem()  # but it cannot be loaded, so nothing is restarted
        return
    assert not code.look(100.0)


def test_installed_packages_are_not_watched_but_registered_code_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "site-packages"
    folder.mkdir()
    for name in ("loaded_code_library", "loaded_code_jobs"):
        (folder / f"{name}.py").write_text("")
    monkeypatch.syspath_prepend(str(folder))
    try:
        importlib.import_module("loaded_code_library")
        importlib.import_module("loaded_code_jobs")
        code = LoadedCode(["loaded_code_jobs", "loaded_code_never_imported"])
        for path in folder.glob("*.py"):
            os.utime(path, (1, 1))
        code.look(100.0)
        assert [os.path.basename(path) for path in code.changed] == ["loaded_code_jobs.py"]
        assert not any(path.startswith(os.path.dirname(os.__file__) + os.sep) for path in code._files)
    finally:
        for name in ("loaded_code_library", "loaded_code_jobs"):
            sys.modules.pop(name, None)


def test_a_module_that_is_imported_later_is_watched_from_then_on(tmp_path: Path, module: Module) -> None:
    code = LoadedCode()
    late = Module("loaded_code_late", tmp_path / "loaded_code_late.py")
    late.write("")
    importlib.import_module(late.name)
    try:
        assert not code.look(100.0)
        late.write("x = 1\n", 5)
        assert code.look(100.0 + SOON)
    finally:
        sys.modules.pop(late.name, None)


def test_the_number_of_files_is_limited(module: Module, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loaded_code, "MOST_FILES", 3)
    code = LoadedCode([module.name])
    assert len(code._files) == 3
    module.write("PRICE = 2\n")
    assert code.look(100.0)  # registered code comes first


def test_a_process_ends_only_for_code_that_can_be_loaded(module: Module) -> None:
    with ShutdownRequest() as stop:
        renewal = Renewal(LoadedCode(), stop)
        renewal.apply(100.0)
        assert not stop.asked
        module.write("PRICE = = 2\n", 1)
        renewal.apply(101.0)
        assert not stop.asked
        assert not renewal.begun
        module.write("PRICE = 2\n", 2)
        renewal.apply(102.0)
        assert stop.asked == 1
        assert renewal.begun


def test_a_process_that_was_asked_to_stop_does_not_start_anew(module: Module) -> None:
    with ShutdownRequest() as stop:
        renewal = Renewal(LoadedCode(), stop)
        stop.ask()
        module.write("PRICE = 2\n")
        renewal.apply(100.0)
        assert not renewal.begun
