"""The tests check the artefacts of an attempt: their files, their `standing`, their links and their deletion."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from django.db import IntegrityError, transaction

from reports.controller import ReportError
from reports.delivery import deliver
from reports.renderers import FORMATS
from scheduling import artefacts as hook
from scheduling.admin.executions.artefacts import all_links, artefacts_for
from scheduling.execution import artefacts as storage
from scheduling.execution.retention import prune
from scheduling.handlers import Run
from scheduling.models import Artefact, SchedulerExecution
from scheduling.models.artefact import Standing
from tests.reports.support import Numbers, artefact_of, execution_of, run_of
from tests.support import NOON

pytestmark = pytest.mark.django_db


class Both(Numbers):
    """A report that makes two files."""

    formats = ("csv", "jsonl")

    def filename(self, params: Any, run: Run) -> str:
        return "../../numbers\r\nof today"


class Breaks(Numbers):
    """A report whose third row has too few columns."""

    def rows(self, params: Any, run: Run) -> Iterator[Any]:
        yield from super().rows(params, run)
        yield ("three",)


def files(media: Path) -> list[str]:
    """Return the sorted names of all files and folders in the media folder."""
    return sorted(path.name for path in media.rglob("*")) if media.exists() else []


def content(artefact: Artefact) -> bytes:
    """Return the bytes of the stored file."""
    with artefact.file.open() as file:
        return bytes(file.read())


def test_a_file_is_stored_with_its_execution_and_attempt(media: Path) -> None:
    execution = execution_of(attempt=3)
    (artefact,) = deliver(Numbers(), None, run_of(execution))
    artefact.refresh_from_db()
    assert (artefact.execution_id, artefact.attempt, artefact.rows) == (execution.pk, 3, 2)
    assert artefact.filename == "numbers-2026-03-10-1200Z.csv"
    assert artefact.content_type == "text/csv; charset=utf-8"
    assert artefact.file.name.startswith(f"artefacts/{execution.pk}/3-")
    assert content(artefact) == b"\xef\xbb\xbfname,total\r\none,1\r\ntwo,2\r\n"
    assert artefact.size == len(content(artefact))


def test_the_checksum_is_that_of_the_stored_file() -> None:
    class Every(Numbers):
        formats = FORMATS

    for artefact in deliver(Every(), None, run_of(execution_of())):
        artefact.refresh_from_db()
        assert artefact.checksum == sha256(content(artefact)).hexdigest()


def test_the_path_cannot_be_guessed_from_the_execution() -> None:
    first, second = (deliver(Numbers(), None, run_of(execution_of()))[0].file.name for _ in range(2))
    assert first.split("-")[1] != second.split("-")[1]


def test_every_format_is_made_and_a_hostile_name_is_made_safe() -> None:
    made = deliver(Both(), None, run_of(execution_of()))
    assert [artefact.filename for artefact in made] == ["numbersof_today.csv", "numbersof_today.jsonl"]
    assert content(made[1]) == b'{"name": "one", "total": 1}\n{"name": "two", "total": 2}\n'


def test_a_report_without_rows_makes_a_file() -> None:
    class Empty(Numbers):
        def rows(self, params: Any, run: Run) -> Iterator[Any]:
            return iter(())

    (artefact,) = deliver(Empty(), None, run_of(execution_of()))
    assert (artefact.rows, artefact.size) == (0, len(b"\xef\xbb\xbfname,total\r\n"))


def test_a_report_that_fails_leaves_no_file(media: Path) -> None:
    with pytest.raises(ReportError, match="Row 3"):
        deliver(Breaks(), None, run_of(execution_of()))
    assert Artefact.objects.count() == 0
    assert files(media) == []


def test_an_attempt_cannot_have_two_files_with_one_name() -> None:
    run = run_of(execution_of())
    deliver(Numbers(), None, run)
    with pytest.raises(IntegrityError), transaction.atomic():
        deliver(Numbers(), None, run)


@pytest.mark.parametrize(
    ("state", "attempt", "standing"),
    [
        ("succeeded", 2, Standing.RESULT),
        ("succeeded", 3, Standing.UNFINISHED),
        ("running", 2, Standing.PENDING),
        ("running", 3, Standing.UNFINISHED),
        ("retrying", 2, Standing.UNFINISHED),
        ("failed", 2, Standing.UNFINISHED),
        ("cancelled", 2, Standing.UNFINISHED),
        ("discarded", 2, Standing.UNFINISHED),
    ],
)
def test_only_the_attempt_that_succeeded_has_a_result(state: str, attempt: int, standing: Standing) -> None:
    artefact = artefact_of(execution_of(state, attempt=attempt), attempt=2)
    assert artefact.standing is standing
    assert artefact.is_result is (standing is Standing.RESULT)
    assert list(Artefact.objects.results()) == ([artefact] if artefact.is_result else [])


def test_the_link_to_the_result_comes_first() -> None:
    execution = execution_of("succeeded", attempt=2)
    result, broken = artefact_of(execution, attempt=2), artefact_of(execution, attempt=1)
    links = artefacts_for(execution.pk)
    downloads = [f"/admin/scheduling/artefact/{artefact.pk}/download/" for artefact in (result, broken)]
    assert [url for _, url in links] == downloads
    assert links[0][0] == "numbers.csv (1 row, 3\xa0bytes)"
    assert "; from the attempt that succeeded: no, this attempt did not succeed)" in links[1][0]
    assert all_links(execution.pk) == links
    assert all_links(execution_of().pk) == []


def test_a_provider_that_raises_does_not_break_the_page(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(execution_id: int) -> list[tuple[str, str]]:
        raise RuntimeError("no")

    monkeypatch.setattr(hook, "_providers", [])
    hook.register(broken)
    hook.register(lambda execution_id: [("a", "/a")])
    hook.register(broken)
    assert hook.links_for(1) == [("a", "/a")]
    assert caplog.text.count("An artefact provider raised") == 1


def test_artefacts_are_deleted_with_their_execution(media: Path) -> None:
    old = execution_of("succeeded", finished_at=NOON)
    kept = execution_of("failed", finished_at=NOON)
    artefact_of(old)
    stays = artefact_of(kept)
    done = prune(NOON + timedelta(days=40), 30)
    assert done.executions == 1
    assert list(Artefact.objects.all()) == [stays]
    assert files(media).count("numbers.csv") == 1
    assert not (media / "artefacts" / str(old.pk)).exists()


def test_a_dry_run_removes_no_file(media: Path) -> None:
    artefact_of(execution_of("succeeded", finished_at=NOON))
    prune(NOON + timedelta(days=40), 30, dry_run=True)
    assert Artefact.objects.count() == 1
    assert "numbers.csv" in files(media)


def test_files_are_deleted_later_if_the_storage_fails(
    media: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = (execution_of("succeeded", finished_at=NOON) for _ in range(2))
    artefact_of(first)
    artefact_of(second)
    delete = storage._delete_file

    def down(place: Any, name: str) -> None:
        if f"artefacts/{first.pk}/" in name:
            raise OSError("no such host")
        delete(place, name)

    with monkeypatch.context() as patch:
        patch.setattr(storage, "_delete_file", down)
        prune(NOON + timedelta(days=40), 30)
    assert "could not be deleted" in caplog.text
    assert SchedulerExecution.objects.count() == 0
    left = Artefact.objects.get()
    assert left.standing is Standing.UNFINISHED
    execution_of("succeeded", finished_at=NOON)
    prune(NOON + timedelta(days=40), 30)
    assert Artefact.objects.count() == 0
    assert "numbers.csv" not in files(media)


def test_a_file_that_was_deleted_before_is_no_error(media: Path) -> None:
    artefact = artefact_of(execution_of())
    (media / artefact.file.name).unlink()
    assert storage.remove([artefact]) == 1
