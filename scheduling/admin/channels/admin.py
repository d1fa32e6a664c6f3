"""The pages of Channels. A channel is a chat, a webhook or a list of e-mail addresses that messages are sent to."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.decorators import method_decorator
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables

from scheduling.admin.channels.form import FIELD, MAKE, SECRET, ChannelForm
from scheduling.admin.channels.test_message import send_test
from scheduling.admin.channels.uses import links_to_uses, why_protected
from scheduling.admin.common.audited import Audited
from scheduling.admin.common.grouped_rows import GroupedRows
from scheduling.admin.common.pages import Page
from scheduling.admin.common.safe_text import column
from scheduling.admin.common.secret_page import secret_page
from scheduling.admin.ui.links import admin_url
from scheduling.admin.ui.media import page_media
from scheduling.admin.ui.text import first_line
from scheduling.admin.ui.times import EMPTY, time_with_relative
from scheduling.core.text import visible_text
from scheduling.models import Channel
from scheduling.models.visibility import visibility_of
from scheduling.notify import guarded_http, webhook
from scheduling.notify.chat_address import not_installed
from scheduling.notify.chat_plugin import IS_INSTALLED
from scheduling.operations.params_diff import Change

HIDDEN = {"address", "secret"}
"""The columns that no page shows and no list is filtered by."""

OF_ALERTS = ("tells_by_default", "least_severity", "group")
"""The columns that say of which alerts the channel is told."""

Kind = Channel.Kind

READ: dict[str, tuple[str, ...]] = {
    Kind.CHAT: ("stored",),
    Kind.WEBHOOK: ("stored", "stored_secret"),
    Kind.EMAIL: ("recipients",),
}
"""What the page of a stored channel shows to users who may not change it, by kind."""

WRITTEN: dict[str, tuple[str, ...]] = {
    Kind.CHAT: ("shown_kind", "stored", FIELD),
    Kind.WEBHOOK: ("shown_kind", "stored", FIELD, "stored_secret", SECRET, MAKE),
    Kind.EMAIL: ("shown_kind", "recipients"),
}
"""The fields of the form of a stored channel, by kind."""


@admin.register(Channel)
class ChannelAdmin(GroupedRows, Audited):
    form = ChannelForm
    change_form_template = "admin/scheduling/channel/change_form.html"
    list_display = (
        column(Channel, "name"), column(Channel, "description"), "shown_kind", "goes_to", "tells_by_default",
        "least_severity", "group",
    )  # fmt: skip
    list_select_related = ("group",)
    search_fields = ("name", "description", "recipients")
    readonly_fields = ("shown_kind", "stored", "stored_secret", "used_by", "created", "changed")
    no_rows = _(
        "A channel is where messages go: a room in Slack, Teams, Mattermost and others, a webhook of your own, or a "
        "list of e-mail addresses."
    )
    pages: tuple[Page, ...] = (Page("test", "test", methods=("POST",)),)

    @property
    def media(self) -> forms.Media:
        return super().media + page_media(sheets=("channel",))

    def code_of(self, row: Any) -> None:
        """A channel names no code."""

    def get_fields(self, request: HttpRequest, obj: Channel | None = None) -> tuple[str, ...]:
        """The fields of the form. A stored channel has those of its kind, and what is known about it."""
        if obj is None:
            return ("name", "description", "kind", FIELD, SECRET, "recipients", *OF_ALERTS)
        known = (*OF_ALERTS, "used_by", "created", "changed")
        if not self.has_change_permission(request, obj):
            return ("name", "description", "shown_kind", *READ.get(obj.kind, ("stored",)), *known)
        # Plain SQL may have written another kind. Then the form asks for the kind, too.
        own = WRITTEN.get(obj.kind, ("kind", "stored", FIELD, SECRET, "recipients"))
        return ("name", "description", *own, *known)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Channel]:
        found: QuerySet[Channel] = super().get_queryset(request)
        return visibility_of(request.user).only(found)

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        """Refuses to filter the list by a secret. A user could find it out, one character at a time."""
        return not HIDDEN & {*lookup.split("__")} and super().lookup_allowed(lookup, value, request)

    def has_test_permission(self, request: HttpRequest) -> bool:
        return self.has_change_permission(request)

    @method_decorator(sensitive_post_parameters(FIELD, SECRET))
    @method_decorator(sensitive_variables())
    def changeform_view(self, *args: Any, **kwargs: Any) -> HttpResponse:
        """Django's reports of errors leave out the posted secrets, and all variables of functions called from here."""
        return super().changeform_view(*args, **kwargs)

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any) -> HttpResponse:
        """Adds the button that sends a test, and what is missing for this kind of channel."""
        row = context.get("original")
        if missing := _missing(row.kind if row is not None else Kind.CHAT):
            context["missing"] = missing
        elif row is not None and self.has_change_permission(request, row):
            context["test"] = admin_url("scheduling_channel_test", row.pk)
        return super().render_change_form(request, context, *args, **kwargs)

    def response_add(self, request: HttpRequest, obj: Any, post_url_continue: Any = None) -> HttpResponse:
        return self._secret_page(request, obj) or super().response_add(request, obj, post_url_continue)

    def response_change(self, request: HttpRequest, obj: Any) -> HttpResponse:
        return self._secret_page(request, obj) or super().response_change(request, obj)

    def _secret_page(self, request: HttpRequest, row: Any) -> HttpResponse | None:
        """The page that shows a made secret; None if none was made."""
        if not row.made_secret:
            return None
        page = admin_url("scheduling_channel_change", row.pk)
        return secret_page(
            self, request, row.made_secret, title=_t("Secret of the channel"), facts=[(_t("Name"), visible_text(row))],
            use=_t("The program behind the webhook verifies the header “CRON-Signature” with it."),
            back=page if self.has_view_permission(request) else "",
        )  # fmt: skip

    @method_decorator(sensitive_variables())
    def test_view(self, request: HttpRequest, row: Channel) -> HttpResponse:
        """POST sends a test message to the channel."""
        if not self.has_change_permission(request, row):
            raise PermissionDenied
        level, text = send_test(request, row)
        self.message_user(request, text, level)
        return HttpResponseRedirect(admin_url("scheduling_channel_change", row.pk))

    def edits_of(self, form: Any) -> list[Change]:
        """The changed fields. Of address and secret, the entry tells only that they are new."""
        edits = [edit for edit in super().edits_of(form) if edit.name not in (FIELD, SECRET, MAKE)]
        was_set = "set" if form.initial else None
        now_set = "set anew" if form.initial else "set"
        if form.cleaned_data.get(FIELD):
            edits.append(Change("address", was_set, now_set))
        if form.cleaned_data.get(SECRET) or form.cleaned_data.get(MAKE):
            edits.append(Change("secret", was_set, now_set))
        return edits

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Names the rows that use the channels. A channel in use cannot be deleted."""
        to_delete, counts, missing, protected = super().get_deleted_objects(objs, request)
        return to_delete, counts, missing, why_protected(objs, request) if protected else protected

    @admin.display(description=_("Address"))
    def stored(self, row: Channel) -> str:
        """The part of the address that is no secret."""
        return _t("is set: %(address)s") % {"address": row.shown_address} if row.address else _t("is not set")

    @admin.display(description=_("Secret"))
    def stored_secret(self, row: Channel) -> str:
        """Whether there is a secret, or the name of its environment variable."""
        if not row.secret:
            return _t("is not set")
        return _t("is set: %(address)s") % {"address": row.shown_secret}

    @admin.display(description=_("Kind"), ordering="kind")
    def shown_kind(self, row: Channel) -> str:
        return visible_text(row.get_kind_display(), 40) or EMPTY

    @admin.display(description=_("Goes to"))
    def goes_to(self, row: Channel) -> SafeString | str:
        """The part of the address that is no secret, or the first e-mail address and the number of the others."""
        if row.kind != Kind.EMAIL:
            return format_html("<code>{}</code>", row.shown_address)
        found = row.addresses
        return (first_line(found[0], 60) if found else EMPTY) + (f" +{len(found) - 1}" if len(found) > 1 else "")

    @admin.display(description=_("Used by"))
    def used_by(self, row: Channel) -> SafeString | str:
        return links_to_uses(row)

    @admin.display(description=_("Created"))
    def created(self, row: Channel) -> str:
        return time_with_relative(row.created_at) or EMPTY

    @admin.display(description=_("Changed"))
    def changed(self, row: Channel) -> str:
        return time_with_relative(row.updated_at) or EMPTY


def _missing(kind: str) -> str:
    """What must be installed before messages can be sent; empty if nothing must."""
    if kind == Kind.WEBHOOK:
        return "" if guarded_http.IS_INSTALLED else str(webhook.not_installed())
    return "" if kind == Kind.EMAIL or IS_INSTALLED else str(not_installed())
