"""What forms offer to a user: only groups of the user, and only channels that the user sees."""

from __future__ import annotations

from typing import Any

from django import forms
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from scheduling.models import Channel
from scheduling.models.visibility import EVERYTHING, visibility_by_groups


def own_groups_only(field: Any, request: HttpRequest) -> None:
    """Let a user choose only a group that the user is a member of. A user who sees all groups may choose each of them.

    The form refuses any other group that a request names.
    """
    groups = visibility_by_groups(request.user).groups
    if groups is not None:
        field.queryset = field.queryset.filter(pk__in=groups)
        field.error_messages["invalid_choice"] = _("You may choose only a group that you are a member of.")


class VisibleChannels(forms.ModelForm):
    """Offers the channels that the user sees. Those that the user does not see stay chosen."""

    visible = EVERYTHING
    """What the user of the form sees. The page sets it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.kept: list[Channel] = []
        field: Any = self.fields.get("channels")
        if field is None or not self.visible.is_limited:
            return
        field.queryset = self.visible.channels()
        if self.instance.pk:
            chosen = list(self.instance.channels.all())
            self.kept = [row for row in chosen if not self.visible.shows(row)]
            self.initial["channels"] = [row for row in chosen if self.visible.shows(row)]

    def _save_m2m(self) -> None:
        super()._save_m2m()  # type: ignore[misc]  # the stubs do not know it
        if self.kept and "channels" in self.cleaned_data:
            self.instance.channels.add(*self.kept)
