"""What a run attaches: `drain` stores it as a consumer does, and `run_inline` checks it and keeps it in memory."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.files.storage import default_storage
from django.db import transaction
from django.test import TestCase, TransactionTestCase

from scheduling.api import run
from scheduling.core.attachments import AttachmentError
from scheduling.execution.attachments import MOST_ATTACHED
from scheduling.handlers import NoParams, Run, registry, worker
from scheduling.models import Artefact
from scheduling.testing import AttachedFile, RunOutcome, drain, run_inline

Function = Callable[[Run], Any]


@pytest.fixture(autouse=True)
def own_storage(settings: Any, tmp_path: Path) -> None:
    settings.MEDIA_ROOT = tmp_path


def ways(function: Function) -> list[Callable[[], RunOutcome]]:
    """Run the function as a handler: with `run_inline`, and with `drain`."""

    @worker("tests.attaches", params=NoParams)
    def attaches(_params: NoParams, run: Run) -> None:
        """Attaches something."""
        function(run)

    def drained() -> RunOutcome:
        run("tests.attaches")
        (outcome,) = drain(raise_errors=False)
        return outcome

    return [lambda: run_inline("tests.attaches"), drained]


def both(function: Function) -> list[RunOutcome]:
    return [way() for way in ways(function)]


def attach_two(run: Run) -> None:
    run.attach(io.BytesIO(b"a,b\n"), "Table 1.csv")
    run.attach(io.BytesIO(b""), "empty")


@pytest.mark.usefixtures("own_handlers")
class Base:
    """The tests that hold both in the transaction of a TestCase and without one."""

    def tearDown(self) -> None:
        """Forget the handler before the database is flushed, which would make a row of it again."""
        registry._handlers.pop(("worker", "tests.attaches"), None)

    def test_the_outcome_has_the_files(self) -> None:
        for outcome in both(attach_two):
            assert outcome.error is None
            assert [file.content for file in outcome.files] == [b"a,b\n", b""]
            assert outcome.files[0] == AttachedFile("Table_1.csv", b"a,b\n")

    def test_drain_stores_artefacts(self) -> None:
        outcome = both(attach_two)[1]
        rows = Artefact.objects.filter(execution=outcome.execution_id, attempt=1).order_by("pk")
        assert [(row.filename, row.size) for row in rows] == [(file.name, len(file.content)) for file in outcome.files]
        assert all(default_storage.exists(str(row.file.name)) for row in rows)
        assert Artefact.objects.count() == 2  # `run_inline` stores none

    def test_what_a_consumer_refuses_is_refused(self) -> None:
        def in_transaction(run: Run) -> None:
            with transaction.atomic():
                run.attach(io.BytesIO(b"x"), "x.txt")

        def twice(run: Run) -> None:
            for _ in range(2):
                run.attach(io.BytesIO(b"x"), "x.txt")

        def too_many(run: Run) -> None:
            for number in range(MOST_ATTACHED + 1):
                run.attach(io.BytesIO(b"x"), f"{number}.txt")

        wrong: list[Function] = [
            lambda run: run.attach("/does/not/exist"),
            lambda run: run.attach("/"),
            lambda run: run.attach(io.BytesIO(b"x"), "a/b"),
            lambda run: run.attach(io.StringIO("x"), "x.txt"),  # type: ignore[arg-type]
            twice,
            too_many,
            in_transaction,
        ]
        for function in wrong:
            texts = set()
            for outcome in both(function):
                assert isinstance(outcome.error, AttachmentError), (function, outcome)
                texts.add(outcome.error_message)
            assert len(texts) == 1


class InTestCase(Base, TestCase):
    """Inside of the transaction of a test."""


class InTransactionTestCase(Base, TransactionTestCase):
    """Each statement commits."""


@pytest.mark.usefixtures("own_handlers")
def test_run_inline_needs_no_database() -> None:
    (file,) = ways(lambda run: run.attach(io.BytesIO(b"x"), "x.txt"))[0]().files
    assert (file.name, file.content) == ("x.txt", b"x")
