"""Mails the files of a report to the recipients that its schedule names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from django.template.defaultfilters import filesizeformat
from django.utils.html import format_html, format_html_join
from django.utils.safestring import mark_safe
from django.utils.translation import gettext as _

from reports.delivery_options import DeliveryOptions
from reports.message import ReportMessage
from scheduling.core.outcome import NonRetryableError
from scheduling.handlers import Run
from scheduling.models import Artefact
from scheduling.notify.delivery import Letter
from scheduling.notify.links import absolute_url
from scheduling.notify.outbox import Recipient, send_to_all


class AttachmentLimits:
    """Most mail servers refuse messages of more than 10 to 25 MB, and the encoding makes a file a third larger."""

    attached_bytes: ClassVar[int] = 7_000_000
    """The maximum size of all files of a message. Larger files are not attached, but linked."""


def mail(
    run: Run, options: DeliveryOptions, artefacts: Sequence[Artefact], message: ReportMessage | None = None
) -> None:
    """Mail the artefacts to the recipients of the options. Without recipients, do nothing.

    Args:
        message: what the mail says besides the files; None for nothing else.

    Raises:
        NonRetryableError: a recipient was refused for good; or the files are not attached, and without CRON_SITE_URL
            the message could not say where they are.
        RetryableError: the mail server did not take some of the messages.
    """
    if not options.recipients:
        return
    small = sum(artefact.size for artefact in artefacts) <= AttachmentLimits.attached_bytes
    letter = letter_of(run, artefacts, attach=options.attach and small, message=message)
    send_to_all(run, [Recipient(address) for address in options.recipients], lambda _recipient: letter)


def letter_of(run: Run, artefacts: Sequence[Artefact], *, attach: bool, message: ReportMessage | None = None) -> Letter:
    """The message with the files, or with the addresses of their pages, which ask for a login.

    Raises:
        NonRetryableError: the files are not attached, and CRON_SITE_URL is not set.
    """
    names = ", ".join(str(artefact) for artefact in artefacts)
    lines = []
    for artefact in artefacts:
        facts = {"name": artefact, "rows": artefact.rows, "size": filesizeformat(artefact.size)}
        lines += [_("%(name)s: %(rows)d rows, %(size)s") % facts, f"SHA-256: {artefact.checksum}"]
        if address := absolute_url("admin:scheduling_artefact_change", artefact.pk):
            lines.append(address)
        elif not attach:
            raise NonRetryableError(
                _("The files are not attached, and the setting CRON_SITE_URL is missing, so no link can be sent.")
            )
        lines.append("")
    lines.append(_("The files are attached.") if attach else _("The files are on these pages. They ask for a login."))
    attachments = [_attachment(artefact) for artefact in artefacts] if attach else []
    subject = _("Report %(names)s") % {"names": names}
    text, html = "\n".join(lines) + "\n", ""
    if message is not None:
        subject, text = " ".join(message.subject.split()), f"{message.text.rstrip()}\n\n{text}"
        html = message.html and _with_files(message.html, lines)
    return Letter(subject[:200], text, html, attachments=attachments)


def _with_files(html: str, lines: Sequence[str]) -> str:
    """The page of the message, with the lines about the files at its end."""
    files = format_html("<p>{}</p>", format_html_join(mark_safe("<br>"), "{}", ((line,) for line in lines)))
    head, end, tail = html.rpartition("</body>")
    return f"{head}{files}{end}{tail}" if end else f"{html}{files}"


def _attachment(artefact: Artefact) -> tuple[str, bytes, str]:
    # Django writes a text with its own line ends. As any other type, the file arrives byte for byte, and its checksum
    # agrees. Programs choose by the extension how to show it.
    with artefact.file.open("rb") as file:
        return str(artefact.filename), file.read(), "application/octet-stream"
