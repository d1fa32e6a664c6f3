"""A badge for a schedule that cannot be planned. The functions that write a schedule in words have no HTML."""

from __future__ import annotations

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from scheduling.admin.ui.badges import badge
from scheduling.core.known_sentences import in_language
from scheduling.models import Scheduler
from scheduling.operations.schedule_words import in_words as in_words
from scheduling.operations.schedule_words import zone_of as zone_of


def plan_error_badge(scheduler: Scheduler) -> SafeString:
    """A badge for a schedule that cannot be planned. The badge's title says why."""
    return badge(_("cannot be planned"), "warn", "bad", in_language(scheduler.plan_error))
