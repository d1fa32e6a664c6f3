"""The pages of Channels. A channel is a chat that reminders are sent to."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.decorators import method_decorator
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables

from scheduling.admin.channels.form import FIELD, ChannelForm
from scheduling.admin.common.audit import record
from scheduling.admin.common.audited import Audited
from scheduling.admin.common.pages import Page
from scheduling.admin.common.safe_text import column
from scheduling.admin.params.diff import Change
from scheduling.admin.ui.links import admin_url
from scheduling.admin.ui.times import EMPTY, time_with_relative
from scheduling.core.text import visible_text
from scheduling.models import Channel, Reminder
from scheduling.notify import chat
from scheduling.notify.chat_address import not_installed
from scheduling.notify.chat_plugin import IS_INSTALLED
from scheduling.notify.delivery import Letter, NotSent, Refused, Unsure
from scheduling.notify.links import absolute_url

NAMED = 10
"""At most this many reminders are named."""


@admin.register(Channel)
class ChannelAdmin(Audited):
    form = ChannelForm
    change_form_template = "admin/scheduling/channel/change_form.html"
    list_display = (column(Channel, "name"), column(Channel, "description"), "kind")
    search_fields = ("name", "description")
    readonly_fields = ("stored", "used_by", "created", "changed")
    shown_instead = {FIELD: "stored"}
    no_rows = _("A channel is a chat that reminders are sent to: a room in Slack, Teams, Mattermost and others.")
    pages: tuple[Page, ...] = (Page("test", "test", methods=("POST",)),)

    def code_of(self, row: Any) -> None:
        """A channel names no code."""

    def get_fields(self, request: HttpRequest, obj: Channel | None = None) -> tuple[str, ...]:
        """The fields of the form. A stored channel also has what is known about it."""
        if obj is None:
            return ("name", "description", FIELD)
        stored = ("stored",) if self.has_change_permission(request, obj) else ()
        return ("name", "description", *stored, FIELD, "used_by", "created", "changed")

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        """Refuses to filter the list by the address. A user could find it out, one character at a time."""
        return "address" not in lookup.split("__") and super().lookup_allowed(lookup, value, request)

    def has_test_permission(self, request: HttpRequest) -> bool:
        return self.has_change_permission(request)

    @method_decorator(sensitive_post_parameters(FIELD))
    @method_decorator(sensitive_variables())
    def changeform_view(self, *args: Any, **kwargs: Any) -> HttpResponse:
        """Django's reports of errors leave out the posted address, and all variables of functions called from here."""
        return super().changeform_view(*args, **kwargs)

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any) -> HttpResponse:
        """Adds the button that sends a test, and what is missing for chats."""
        if not IS_INSTALLED:
            context["missing"] = str(not_installed())
        elif (row := context.get("original")) is not None and self.has_test_permission(request):
            context["test"] = admin_url("scheduling_channel_test", row.pk)
        return super().render_change_form(request, context, *args, **kwargs)

    @method_decorator(sensitive_variables())
    def test_view(self, request: HttpRequest, row: Channel) -> HttpResponse:
        """POST sends a test message to the channel."""
        level, text = _send_test(request, row)
        self.message_user(request, text, level)
        record(request, [row], "test sent" if level == messages.SUCCESS else "test failed")
        return HttpResponseRedirect(admin_url("scheduling_channel_change", row.pk))

    def edits_of(self, form: Any) -> list[Change]:
        """The changed fields. Of the address, the entry tells only that it is new."""
        edits = [edit for edit in super().edits_of(form) if edit.name != FIELD]
        if form.cleaned_data.get(FIELD):
            edits.append(Change("address", "set" if form.initial else None, "set anew" if form.initial else "set"))
        return edits

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Names the reminders that use the channels. A channel in use cannot be deleted."""
        to_delete, counts, missing, protected = super().get_deleted_objects(objs, request)
        if protected:
            rows = Reminder.objects.filter(channels__in=objs).distinct()[:NAMED]
            said = _t("The reminder “%(name)s” sends to it. Remove the channel from this reminder first.")
            protected = [said % {"name": visible_text(row)} for row in rows]
        return to_delete, counts, missing, protected

    @admin.display(description=_("Address"))
    def stored(self, row: Channel) -> str:
        """The part of the address that is no secret."""
        return _t("is set: %(address)s") % {"address": row.shown_address}

    @admin.display(description=_("Address"))
    def kind(self, row: Channel) -> SafeString:
        return format_html("<code>{}</code>", row.shown_address)

    @admin.display(description=_("Used by"))
    def used_by(self, row: Channel) -> SafeString | str:
        """The reminders that are sent to the channel."""
        found = list(row.reminders.all()[: NAMED + 1])
        if not found:
            return _t("No reminder uses it.")
        links = ((admin_url("scheduling_reminder_change", one.pk), visible_text(one, 80)) for one in found[:NAMED])
        more = _t(" and more") if len(found) > NAMED else ""
        return format_html("{}{}", format_html_join(", ", '<a href="{}">{}</a>', links), more)

    @admin.display(description=_("Created"))
    def created(self, row: Channel) -> str:
        return time_with_relative(row.created_at) or EMPTY

    @admin.display(description=_("Changed"))
    def changed(self, row: Channel) -> str:
        return time_with_relative(row.updated_at) or EMPTY


def _send_test(request: HttpRequest, row: Channel) -> tuple[int, str]:
    """Send the message. The sender's time limit ends it, because a web process waits for it."""
    user: Any = request.user
    name = {"name": row.name, "user": user.get_full_name() or user.get_username()}
    lines = [_t("%(user)s has sent this message to test the channel.") % name]
    if url := absolute_url("admin:scheduling_channel_change", row.pk):
        lines.append(url)
    try:
        chat.send(row.address, Letter(_t("Test of the channel “%(name)s”") % name, "\n".join(lines)))
    except (Refused, NotSent) as error:
        return messages.ERROR, _t("It was not sent. %(error)s") % {"error": visible_text(error, 400)}
    except Unsure as error:
        said = _t("The message may have arrived. %(error)s")
        return messages.WARNING, said % {"error": visible_text(error, 400)}
    return messages.SUCCESS, _t("The message was sent to “%(name)s”.") % {"name": visible_text(row)}
