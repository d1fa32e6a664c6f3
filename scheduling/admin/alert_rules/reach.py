"""Which channels a rule tells."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from scheduling.admin.ui.badges import badge
from scheduling.alerts.notices import ROUTING, Routes
from scheduling.core.text import visible_text
from scheduling.models import AlertRule
from scheduling.models.visibility import Visibility

MOST_NAMED = 5


@dataclass
class Reach:
    """The channels that a rule tells.

    Args:
        names: of the channels that the user sees.
        hidden: whether it tells further channels, which the user does not see.
        own: whether the rule names channels. Otherwise they are those that are told by default.
    """

    names: list[str] = field(default_factory=list)
    hidden: bool = False
    own: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether no channel is told."""
        return not self.names and not self.hidden

    @property
    def words(self) -> str:
        """The channels as text; empty if there is none."""
        if self.is_empty:
            return ""
        shown = self.names[:MOST_NAMED]
        if more := len(self.names) - len(shown):
            shown.append(_("%(count)d more") % {"count": more})
        if self.hidden:
            shown.append(_("channels of other groups"))
        text = ", ".join(shown)
        return text if self.own else _("default channels: %(names)s") % {"names": text}

    @property
    def why_empty(self) -> str:
        """Why no channel is told."""
        if self.own:
            return _("Its channels leave out this severity or this group.")
        return _("It names no channel, and no channel is told by default of this severity and group.")

    @property
    def cell(self) -> SafeString | str:
        """The channels for a list, or a clear warning."""
        if not self.is_empty:
            return self.words
        return badge(_("tells no channel"), "warn", "warn", self.why_empty)


def reaches(rules: Iterable[AlertRule], visible: Visibility) -> dict[int, Reach]:
    """The reach of each rule, by primary key. Four queries read the channels of all rules."""
    listed = list(rules)
    keys = {rule.pk for rule in listed}
    routes = Routes(keys, (*ROUTING, "name"))
    named = AlertRule.channels.through._default_manager.filter(alertrule__in=keys)
    own = set(named.values_list("alertrule", flat=True))
    found = {}
    for rule in listed:
        told = routes.chosen(rule.pk, rule.severity, rule.group_id)
        seen = [visible_text(one.name, 60) for one in told if visible.shows_group(one.group_id)]
        found[rule.pk] = Reach(seen, len(seen) < len(told), rule.pk in own)
    return found
