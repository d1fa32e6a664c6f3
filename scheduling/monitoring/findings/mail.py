"""Finds out that channels with e-mail addresses get nothing, because the site prints or keeps its e-mails."""

from __future__ import annotations

from collections.abc import Iterator

from django.utils.translation import gettext as _

from scheduling.monitoring.findings.finding import Finding, warn
from scheduling.monitoring.findings.present import Present
from scheduling.monitoring.findings.watched import mail_channels
from scheduling.operations.mail_backend import sends_mail


def examine(present: Present) -> Iterator[Finding]:
    """Report channels of e-mail addresses on a site that sends no e-mails."""
    if not sends_mail() and present.count(mail_channels):
        yield warn(
            "mail",
            _("This site prints or keeps e-mails instead of sending them, and a channel has e-mail addresses."),
            _("Set EMAIL_URL (in a project of your own: EMAIL_BACKEND), and restart all processes."),
        )
