"""The files that a run of a test attaches."""

from __future__ import annotations

from dataclasses import dataclass, field

from scheduling.execution.attachments import Source, attach, check_number, checked_file, open_blocks, taken
from scheduling.execution.filenames import safe_filename
from scheduling.handlers import Run
from scheduling.models import Artefact


@dataclass(frozen=True)
class AttachedFile:
    """A file that a run has attached.

    Args:
        name: its name, as operators see it.
        content: its bytes.
    """

    name: str
    content: bytes = field(repr=False)


class MemoryFiles:
    """Checks the files of a run that has no execution, and keeps them in memory."""

    def __init__(self) -> None:
        self.found: list[AttachedFile] = []
        self._outer_blocks = open_blocks()  # a test may have a transaction around the handler

    def attach(self, run: Run, source: Source, name: str = "") -> None:
        """Keep a file. See `Run.attach`.

        Raises:
            AttachmentError: the file, its name or its size is refused.
        """
        with checked_file(source, name, self._outer_blocks) as (file, parts):
            check_number(len(self.found))
            filename = safe_filename(*parts)
            if filename in {one.name for one in self.found}:
                raise taken(filename)
            file.seek(0)
            self.found.append(AttachedFile(filename, file.read()))


class StoredFiles(MemoryFiles):
    """Stores the files of a run as artefacts of its execution, inside the transaction of a test."""

    def attach(self, run: Run, source: Source, name: str = "") -> None:
        """Store a file. See `Run.attach`."""
        attach(run, source, name, outer_blocks=self._outer_blocks)
        artefact = Artefact.objects.filter(execution=run.execution_id, attempt=run.attempt).latest("pk")
        with artefact.file.open("rb") as file:
            self.found.append(AttachedFile(artefact.filename, file.read()))
