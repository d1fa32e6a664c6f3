"""Sends a test message through a channel, for a user of the admin."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

from django.contrib import messages
from django.contrib.admin.models import CHANGE, LogEntry
from django.http import HttpRequest
from django.utils import timezone as clock
from django.utils.translation import gettext as _

from scheduling.core.known_sentences import for_reader
from scheduling.core.text import visible_text
from scheduling.models import Channel
from scheduling.notify import channels
from scheduling.notify.delivery import Letter, NotSent, Refused, Unsure
from scheduling.notify.links import absolute_url
from scheduling.operations.mail_backend import sends_mail

MOST_TESTS = 5
WINDOW = timedelta(minutes=1)
"""A user sends at most so many tests within this time. With more of them, the answers could map a network."""

BEGUN, SENT, FAILED = "test begun", "test sent", "test failed"
"""What the history of the channel says. An entry stays at BEGUN if the process dies."""

MAIL_SECONDS = 10.0
"""After this time no further e-mail is begun, because a web process waits. The last one has as long once more."""


def send_test(request: HttpRequest, row: Channel) -> tuple[int, str]:
    """Send the message, and record it in the history of the channel. Returns the level and the sentence for the user.

    The sender's time limit ends it, because a web process waits for it.
    """
    entry = _begin(request, row)
    if entry is None:
        said = _("It was not sent. You have sent %(count)d tests within a minute. Wait a minute.")
        return messages.ERROR, said % {"count": MOST_TESTS}
    level, text = _send(request, row)
    entry.change_message = SENT if level == messages.SUCCESS else FAILED
    entry.save(update_fields=["change_message"])
    return level, text


def _begin(request: HttpRequest, row: Channel) -> LogEntry | None:
    """The entry of a test that may be sent; None if the user has sent too many.

    The entry is written before the others are counted. So of many requests at once, no more than MOST_TESTS pass.
    """
    assert request.user.pk is not None  # noqa: S101 - only logged-in users reach this page
    entry: Any = LogEntry.objects.log_actions(request.user.pk, [row], CHANGE, BEGUN, single_object=True)
    same = LogEntry.objects.filter(user=request.user.pk, content_type=entry.content_type_id)
    recent = same.filter(action_time__gt=clock.now() - WINDOW, change_message__in=(BEGUN, SENT, FAILED))
    if recent.count() <= MOST_TESTS:
        return entry  # type: ignore[no-any-return]
    entry.delete()
    return None


def _send(request: HttpRequest, row: Channel) -> tuple[int, str]:
    user: Any = request.user
    name = {"name": visible_text(row.name), "user": user.get_full_name() or user.get_username()}
    url = absolute_url("admin:scheduling_channel_change", row.pk)
    lines = [_("%(user)s has sent this message to test the channel.") % name, *([url] if url else [])]
    letter = Letter(_("Test of the channel “%(name)s”") % name, "\n".join(lines))
    facts = {"event": "test", "channel": {"id": row.pk, "name": row.name}, "user": name["user"], "url": url}
    try:
        channels.send(row, letter, facts, f"test-{uuid.uuid4()}", most_seconds=MAIL_SECONDS)
    except (Refused, NotSent) as error:
        return messages.ERROR, _("It was not sent. %(error)s") % {"error": for_reader(str(error), 400)}
    except Unsure as error:
        said = _("The message may have arrived. %(error)s")
        return messages.WARNING, said % {"error": for_reader(str(error), 400)}
    if row.kind == Channel.Kind.EMAIL and not sends_mail():
        said = _("This site prints or keeps e-mails instead of sending them, so “%(name)s” gets none. %(advice)s")
        advice = _("Set EMAIL_URL (in a project of your own: EMAIL_BACKEND), and restart all processes.")
        return messages.WARNING, said % {**name, "advice": advice}
    return messages.SUCCESS, _("The message was sent to “%(name)s”.") % name
