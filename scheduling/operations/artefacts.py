"""Opens the file of an artefact for a download."""

from __future__ import annotations

from django.core.exceptions import SuspiciousOperation
from django.db.models import QuerySet
from django.http import FileResponse
from django.utils.translation import gettext as _

from scheduling.core.attachments import split_name
from scheduling.core.text import visible_text
from scheduling.execution.artefacts import download_type
from scheduling.execution.filenames import safe_filename
from scheduling.models import Artefact
from scheduling.operations.actor import Actor
from scheduling.operations.refused import Code, Refused

VIEW = "scheduling.view_artefact"


def seen(actor: Actor) -> QuerySet[Artefact]:
    """The artefacts that the actor sees.

    Raises:
        Refused: FORBIDDEN.
    """
    actor.must(VIEW)
    return actor.visible.of_executions(Artefact.objects.all())


def download(artefact: Artefact) -> FileResponse:
    """The file as an attachment, so that a browser saves it and never shows it.

    Raises:
        Refused: CONFLICT if the file cannot be read from this host.
    """
    try:
        file = artefact.file.open("rb")
    except (OSError, ValueError, SuspiciousOperation):
        # ValueError: the row has no file name.
        # SuspiciousOperation: plain SQL wrote a file name that points outside the storage.
        text = _(
            "The file of %(name)s cannot be read from here. Consumers and web processes need "
            'one storage for both: a shared MEDIA_ROOT, or an entry "artefacts" in STORAGES.'
        )
        raise Refused(Code.CONFLICT, text % {"name": visible_text(artefact.filename)}) from None
    stem, extension = split_name(artefact.filename)
    return FileResponse(
        file,
        as_attachment=True,
        filename=safe_filename(stem, extension),
        content_type=download_type(extension),
        headers={"X-Content-Type-Options": "nosniff"},
    )
