"""The buttons and list actions of alerts: acknowledge, take back, mute, unmute."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from scheduling.admin.common.confirm import SAMPLES, Confirmation, action_fields
from scheduling.admin.common.mute_form import MuteForm
from scheduling.admin.common.next_page import next_page
from scheduling.admin.common.pages import Page, Pages
from scheduling.admin.ui.links import admin_url
from scheduling.admin.ui.times import format_minute
from scheduling.core.text import visible_text
from scheduling.models import Alert
from scheduling.operations import alerts
from scheduling.operations.actor import Actor
from scheduling.operations.refused import Refused


class AlertActions(Pages):
    """Each action exists twice: for the alerts that are ticked in the list, and on the page of one alert."""

    pages: tuple[Page, ...] = (
        Page("acknowledge", "acknowledge", methods=("POST",)),
        Page("take_back", "acknowledge", methods=("POST",)),
        Page("mute", "acknowledge"),
        Page("unmute", "acknowledge", methods=("POST",)),
    )

    def has_acknowledge_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm(alerts.ACKNOWLEDGE)

    def acknowledge_view(self, request: HttpRequest, row: Alert) -> HttpResponse:
        """POST records that the user has taken notice."""
        self.acknowledge_selected(request, _one(row))
        return _back(request, row)

    def take_back_view(self, request: HttpRequest, row: Alert) -> HttpResponse:
        """POST takes the acknowledgement back."""
        self.take_back_selected(request, _one(row))
        return _back(request, row)

    def unmute_view(self, request: HttpRequest, row: Alert) -> HttpResponse:
        """POST ends the mute."""
        self.unmute_selected(request, _one(row))
        return _back(request, row)

    def mute_view(self, request: HttpRequest, row: Alert) -> HttpResponse:
        """GET asks until when, and why. POST mutes the alert."""
        own = admin_url("scheduling_alert_change", row.pk)
        if not row.is_open:
            self.message_user(request, _t("The alert is over. There is nothing to mute."), messages.WARNING)
            return HttpResponseRedirect(own)
        if not self._may_mute(request, _one(row)):
            return HttpResponseRedirect(own)
        form = MuteForm(request.POST if request.method == "POST" else None)
        if form.is_valid():
            self._mute(request, _one(row), form.cleaned_data)
            return HttpResponseRedirect(own)
        lead = _t("The dashboard does not show “%(name)s” until then, and no further channel is told of it.")
        lead %= {"name": _name(row)}
        return self._ask(request, form, lead, 1, own, crumbs=[(own, visible_text(row.subject, 60))])

    @admin.action(permissions=["acknowledge"], description=_("Acknowledge selected"))
    def acknowledge_selected(self, request: HttpRequest, queryset: QuerySet[Alert]) -> None:
        """The dashboard counts them no longer, and the list says who looks after them."""
        done = len(alerts.acknowledge(Actor(request.user), queryset))
        said = ngettext("%(count)d alert was acknowledged.", "%(count)d alerts were acknowledged.", done)
        none = _t("Nothing was changed: it is acknowledged already, or over.")
        self._say(request, done, said, none)

    @admin.action(permissions=["acknowledge"], description=_("Take the acknowledgement of selected back"))
    def take_back_selected(self, request: HttpRequest, queryset: QuerySet[Alert]) -> None:
        """They are new again."""
        done = len(alerts.take_back(Actor(request.user), queryset))
        said = ngettext("%(count)d alert is new again.", "%(count)d alerts are new again.", done)
        self._say(request, done, said, _t("Nothing was changed: it is not acknowledged, or over."))

    @admin.action(permissions=["acknowledge"], description=_("Mute selected"))
    def mute_selected(self, request: HttpRequest, queryset: QuerySet[Alert]) -> HttpResponse | None:
        """Asks until when, and why."""
        if not self._may_mute(request, queryset):
            return None
        form = MuteForm(request.POST if request.POST.get("post") else None)
        if form.is_valid():
            self._mute(request, queryset, form.cleaned_data)
            return None
        chosen = queryset.filter(ended_at=None)
        count = chosen.count()
        lead = ngettext(
            "The dashboard does not show %(count)d alert until then, and no further channel is told of it.",
            "The dashboard does not show %(count)d alerts until then, and no further channel is told of them.",
            count,
        )
        return self._ask(
            request, form, lead % {"count": count}, count, request.get_full_path(),
            hidden=action_fields(request, "mute_selected"), samples=[_name(row) for row in chosen[:SAMPLES]],
            more=max(count - SAMPLES, 0),
        )  # fmt: skip

    @admin.action(permissions=["acknowledge"], description=_("Unmute selected"))
    def unmute_selected(self, request: HttpRequest, queryset: QuerySet[Alert]) -> None:
        """What was not told because of the mute is told now."""
        if not self._may_mute(request, queryset):
            return
        done = len(alerts.unmute(Actor(request.user), queryset))
        said = ngettext("%(count)d alert is not muted any longer.", "%(count)d alerts are not muted any longer.", done)
        self._say(request, done, said, _t("Nothing was changed: it is not muted, or over."))

    def _may_mute(self, request: HttpRequest, queryset: QuerySet[Alert]) -> bool:
        """Whether the user may mute these alerts. If not, a message says why."""
        try:
            alerts.check_mute(Actor(request.user), queryset)
        except Refused as refused:
            self.message_user(request, refused.said, messages.ERROR)
            return False
        return True

    def _mute(self, request: HttpRequest, queryset: QuerySet[Alert], data: dict[str, Any]) -> None:
        done = len(alerts.mute(Actor(request.user), queryset, data["until"], data["reason"]))
        said = ngettext(
            "%(count)d alert is muted until %(until)s.", "%(count)d alerts are muted until %(until)s.", done
        )
        self._say(request, done, said, _t("Nothing was changed: it is over."), until=format_minute(data["until"]))

    def _say(self, request: HttpRequest, done: int, said: str, none: str, **facts: str) -> None:
        text = said % {"count": done, **facts} if done else none
        self.message_user(request, text, messages.SUCCESS if done else messages.WARNING)

    def _ask(self, request: HttpRequest, form: MuteForm, lead: str, count: int, back: str, **more: Any) -> HttpResponse:
        after = _t("An alert that outlasts the mute is told then. Channels that know of the start are told of the end.")
        return Confirmation(
            title=_t("Mute"), lead=lead, submit=_t("Mute"), back=back, form=form, blocked=not count,
            warnings=[after] if count else [_t("All of them are over.")], **more,
        ).response(request, self)  # fmt: skip


def _name(row: Alert) -> str:
    return visible_text(f"{row.rule_name}: {row.subject}", 160)


def _one(row: Alert) -> QuerySet[Alert]:
    return Alert.objects.filter(pk=row.pk)


def _back(request: HttpRequest, row: Alert) -> HttpResponse:
    return HttpResponseRedirect(next_page(request, admin_url("scheduling_alert_change", row.pk)))
