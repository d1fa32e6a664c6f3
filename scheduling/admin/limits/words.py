"""Says limits in words."""

from __future__ import annotations

from django.utils.translation import gettext as _

from scheduling.core.run_limit import Limit
from scheduling.core.words import decimal
from scheduling.handlers.targets import handler_named


def rules_in_words(type_: str, name: str, at_once: object = None, starts: object = None) -> str:
    """The option of the handler, in words; empty if this process knows none.

    Args:
        at_once: the number to which users have lowered it.
        starts: likewise.
    """
    handler = handler_named(type_, name)
    if handler is None or handler.limit is None:
        return ""
    of = _("for each key") if handler.limit.key != "" else _("for all runs together")
    rules = handler.limit.lowered(at_once, starts)
    text = f"{numbers_in_words(rules)} {of}"
    if rules == handler.limit:
        return text
    return _("%(rules)s (lowered; in the code: %(code)s)") % {"rules": text, "code": numbers_in_words(handler.limit)}


def numbers_in_words(rules: Limit) -> str:
    """How many runs at once, and how many starts, such as `2 at once, 10 starts within 60 s`."""
    parts = []
    if rules.at_once is not None:
        parts.append(_("%(count)s at once") % {"count": rules.at_once})
    if rules.starts is not None:
        parts.append(_("%(count)s starts within %(per)s s") % {"count": rules.starts, "per": decimal(f"{rules.per:g}")})
    return ", ".join(parts)
