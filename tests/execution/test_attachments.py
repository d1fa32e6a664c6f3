"""A handler attaches files to its run. What cannot be attached is an error at the call, and leaves nothing behind."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import pytest
from django.core.files.storage import FileSystemStorage
from django.db import transaction

from scheduling.admin.executions.artefacts import label
from scheduling.core.attachments import checked_name
from scheduling.core.steps import FencedOff
from scheduling.execution.attachments import MOST_ATTACHED, attach
from scheduling.handlers import AttachmentError
from scheduling.models import Artefact, SchedulerExecution
from tests.reports.support import artefact_of, execution_of, run_of


@pytest.fixture(autouse=True)
def media(settings: Any, tmp_path: Path) -> Path:
    """Keep the files of a test in a folder of its own."""
    settings.MEDIA_ROOT = tmp_path / "media"
    return tmp_path / "media"


def files(media: Path) -> list[Path]:
    return [path for path in media.rglob("*") if path.is_file()]


class Silent(io.RawIOBase):
    """A file that can be neither read nor rewound, such as a socket."""


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("", "needs a name"),
        (7, "needs a name"),
        ("...", "needs a name"),
        ("../../etc/passwd", "slash"),
        ("a\\b.txt", "slash"),
        ("a\x00b", "control character"),
        ("a\nb", "control character"),
        ("n" * 10_000, "10,000 characters; at most 100"),
    ],
)
def test_a_bad_name_is_an_error_at_the_call(name: Any, words: str) -> None:
    with pytest.raises(AttachmentError, match=words):
        attach(run_of(), io.BytesIO(b"x"), name)


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("a.tar.GZ", ("a.tar", "gz")),
        ("Makefile", ("Makefile", "")),
        (".env", (".env", "")),
        ("v1.2 final", ("v1.2 final", "")),
        ("r.2026-11-23T20:00", ("r.2026-11-23T20:00", "")),
    ],
)
def test_a_name_has_a_stem_and_perhaps_an_extension(name: str, parts: tuple[str, str]) -> None:
    assert checked_name(name) == parts


def test_what_is_no_readable_file_is_an_error_at_the_call(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    bad: list[tuple[Any, str]] = [
        (tmp_path / "missing.txt", "No such file"),
        (str(tmp_path / "missing.txt"), "No such file"),
        (tmp_path, "a folder or a device"),
        (tmp_path / "pipe", "a folder or a device"),
        ("nul\x00", "null"),
        (io.StringIO("text"), "mode 'rb'"),
        (Silent(), "mode 'rb'"),
        (b"bytes", "mode 'rb'"),
        (None, "mode 'rb'"),
        (7, "mode 'rb'"),
    ]
    for source, words in bad:
        with pytest.raises(AttachmentError, match=words):
            attach(run_of(), source, "name.txt")


def test_a_file_above_the_limit_is_not_read(tmp_path: Path, settings: Any) -> None:
    with (tmp_path / "large").open("wb") as file:
        file.truncate(5 * 1024**3)
    with pytest.raises(AttachmentError, match=r"5.0.GB \(5,368,709,120 bytes\); at most 100,000,000 bytes are allowed"):
        attach(run_of(), tmp_path / "large")
    settings.CRON_ATTACHMENT_MAX_BYTES = "1000"
    with pytest.raises(AttachmentError, match="at most 1,000 bytes"):
        attach(run_of(), io.BytesIO(b"x" * 1_001), "small")


@pytest.mark.any_database
@pytest.mark.django_db(transaction=True)
def test_a_file_is_an_artefact_of_its_attempt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, media: Path) -> None:
    execution = execution_of()
    run = run_of(execution, attach_file=attach)
    path = tmp_path / "ñ $(rm).txt"
    path.write_bytes(b"hello")
    run.attach(path)
    stored = Artefact.objects.get()
    assert (stored.filename, stored.size, stored.rows) == ("ñ_rm.txt", 5, None)
    assert label(stored).startswith("ñ_rm.txt (5\xa0bytes; ")
    with path.open("rb") as file:
        file.read()
        run.attach(file, "again.txt")
    assert stored.checksum == Artefact.objects.get(filename="again.txt").checksum
    assert len(files(media)) == 2

    with transaction.atomic(), pytest.raises(AttachmentError, match=r"outside of transaction\.atomic"):
        run.attach(path, "atomic.txt")

    def full(*_values: Any) -> None:
        raise OSError("no space left on the device")

    with monkeypatch.context() as patch:
        patch.setattr(FileSystemStorage, "_save", full)
        with pytest.raises(OSError, match="no space"):
            run.attach(path, "full.txt")
    execution.attempt = 2
    execution.save()
    with pytest.raises(FencedOff, match="Another process owns this execution"):
        run.attach(path, "late.txt")
    execution.attempt, execution.state = 1, "succeeded"
    execution.save()
    with pytest.raises(FencedOff):
        run.attach(path, "late.txt")
    assert Artefact.objects.count() == 2
    assert len(files(media)) == 2


class LosesItsRun(io.BytesIO):
    """A file during whose reading another process takes the execution over."""

    def read(self, size: int | None = -1, /) -> bytes:
        if size:
            SchedulerExecution.objects.update(attempt=2)
        return super().read(size)


@pytest.mark.django_db(transaction=True)
def test_a_file_of_an_attempt_that_is_fenced_off_meanwhile_is_removed(media: Path) -> None:
    execution = execution_of()
    with pytest.raises(FencedOff):
        attach(run_of(execution), LosesItsRun(b"x" * 100_000), "large.bin")
    assert not Artefact.objects.exists()
    assert not files(media)


@pytest.mark.django_db(transaction=True)
def test_an_attempt_has_a_limited_number_of_files() -> None:
    execution = execution_of()
    first = artefact_of(execution)
    Artefact.objects.bulk_create(
        Artefact(execution=execution, attempt=1, filename=str(number), file=first.file.name)
        for number in range(1, MOST_ATTACHED)
    )
    with pytest.raises(AttachmentError, match="100 files"):
        attach(run_of(execution), io.BytesIO(b"x"), "one more")


def test_a_run_without_a_child_stores_nothing() -> None:
    run_of().attach("nowhere")
