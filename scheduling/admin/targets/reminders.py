"""The pages of Reminders. A Reminder is a message that a schedule sends."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils import timezone as clock
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _

from scheduling.admin.common.own_rows import VisibleChannels
from scheduling.admin.common.pages import Page
from scheduling.admin.common.safe_text import column
from scheduling.admin.params.json_field import PrettyJSONField
from scheduling.admin.targets.uses import Uses
from scheduling.admin.ui.autocomplete import AutocompleteMany
from scheduling.admin.ui.links import admin_url
from scheduling.admin.ui.media import page_media
from scheduling.admin.ui.text import first_line
from scheduling.admin.ui.times import EMPTY
from scheduling.core.known_sentences import for_reader
from scheduling.core.text import visible_text
from scheduling.models import Reminder, Scheduler
from scheduling.models.visibility import visibility_of
from scheduling.notify.addresses import checked_lines
from scheduling.notify.delivery import Letter, NotSent, Refused, Unsure
from scheduling.notify.email import Mailer, message_id
from scheduling.notify.message_template import MessageTemplateError, compiled
from scheduling.notify.outbox import Recipient
from scheduling.notify.reminder_letter import letter_of, message_data, surroundings
from scheduling.operations.audit import record

MOST_ADDRESSES = 1_000
MOST_CHANNELS = 50
"""A chat server that does not answer takes its time limit, and the channels are sent to one after the other."""

MAIL_SECONDS = 20.0
"""The time limit for a test, because a web process waits."""

RECIPIENTS = ("users", "groups", "recipients", "channels")
CHOSEN = ("users", "groups", "channels")
"""The fields in which a user chooses rows."""


class ReminderForm(VisibleChannels):
    """The form of a reminder. Users write each further address on a separate line."""

    params = PrettyJSONField(label=_("Parameters"), help_text=_("A JSON object. The texts can use its values."))

    def clean_recipients(self) -> str:
        """Returns the email addresses, one on each line, without empty lines. An error names the invalid addresses."""
        return checked_lines(self.cleaned_data["recipients"], MOST_ADDRESSES)

    def clean_channels(self) -> Any:
        channels = self.cleaned_data["channels"]
        if len(channels) > MOST_CHANNELS:
            raise ValidationError(_("At most %(count)d channels."), code="many", params={"count": MOST_CHANNELS})
        return channels

    def clean_subject(self) -> str:
        return self._template("subject")

    def clean_body(self) -> str:
        return self._template("body")

    def clean_html(self) -> str:
        return self._template("html")

    def _template(self, name: str) -> str:
        source: str = self.cleaned_data[name]
        try:
            compiled(source)
        except MessageTemplateError as error:
            raise ValidationError(str(error), code="template") from None
        return source

    def clean(self) -> dict[str, Any]:
        """Refuses a reminder without a recipient."""
        data: dict[str, Any] = super().clean() or {}
        given = [name for name in RECIPIENTS if name in self.fields]
        if (
            len(given) == len(RECIPIENTS)
            and "recipients" not in self.errors
            and not any(data.get(name) for name in given)
            and not self.kept
        ):
            self.add_error("recipients", ValidationError(_("Give at least one recipient."), code="no_recipient"))
        return data


@admin.register(Reminder)
class ReminderAdmin(Uses):
    form = ReminderForm
    change_form_template = "admin/scheduling/targets/reminder.html"
    list_display = (column(Reminder, "name"), column(Reminder, "subject"), "to")
    search_fields = ("name", "subject", "recipients")
    no_rows = _("A reminder is a message that a schedule sends at its times, by e-mail and to channels.")
    shown_instead = {**Uses.shown_instead, "channels": "channels_shown"}
    pages: tuple[Page, ...] = (Page("test", "test", methods=("POST",)),)
    fieldsets = (
        (None, {"fields": ("name",)}),
        (
            _("Recipients"),
            {
                "fields": RECIPIENTS,
                "description": _(
                    "Each user and each address gets an e-mail of their own. Users who are not active get none. "
                    "Each chat and each webhook of the channels gets the subject and the text as a message."
                ),
            },
        ),
        (
            _("Message"),
            {
                "fields": ("subject", "body", "html"),
                "description": _(
                    "Texts can contain values, such as {{ occurrence.at|date:'l j F, H:i' }}, "
                    "{{ schedule.description }}, {{ recipient.name }} and {{ params.place }}, and the tags if and for."
                ),
            },
        ),
        (_("Parameters"), {"classes": ("collapse",), "fields": ("params",)}),
    )

    @property
    def media(self) -> forms.Media:
        return super().media + page_media(scripts=("choices",))

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        form: Any = super().get_form(request, obj, change, **kwargs)
        form.visible = visibility_of(request.user)
        return form

    def get_autocomplete_fields(self, request: HttpRequest) -> Any:
        """Rows are chosen with autocomplete if their pages on this site can be searched; otherwise from a list."""
        registered = self.admin_site._registry
        fields = {field: self.opts.get_field(field).related_model for field in CHOSEN}
        return tuple(name for name, model in fields.items() if model in registered and registered[model].search_fields)

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Removes the buttons that add, change or delete a user, a group or a channel."""
        if db_field.name in self.get_autocomplete_fields(request):
            kwargs["widget"] = AutocompleteMany(db_field, self.admin_site)
        field = super().formfield_for_dbfield(db_field, request, **kwargs)
        if field is not None and db_field.name in CHOSEN:
            for ability in ("can_add_related", "can_change_related", "can_delete_related"):
                setattr(field.widget, ability, False)
        return field

    def has_test_permission(self, request: HttpRequest) -> bool:
        return self.has_change_permission(request)

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any) -> HttpResponse:
        """Adds the preview of the stored reminder, and the button that sends it to the user."""
        if (row := context.get("original")) is not None and not context.get("is_popup"):
            context["preview"] = preview(request, row)
            if self.has_test_permission(request):
                context["test"] = admin_url("scheduling_reminder_test", row.pk)
        return super().render_change_form(request, context, *args, **kwargs)

    def test_view(self, request: HttpRequest, row: Reminder) -> HttpResponse:
        """POST sends the stored reminder to the user who asks, and to no other recipient."""
        address = str(getattr(request.user, "email", "") or "")
        if not address:
            self.message_user(request, _t("Your account has no e-mail address."), messages.ERROR)
        else:
            level, text = _send_test(request, row, address)
            self.message_user(request, text, level)
            if level == messages.SUCCESS:
                record(request, [row], "test sent")
        return HttpResponseRedirect(admin_url("scheduling_reminder_change", row.pk))

    @admin.display(description=_("Channels"))
    def channels_shown(self, row: Reminder) -> str:
        """The channels that belong to no group, for users who may only view. A name can tell what a group does."""
        return ", ".join(visible_text(one, 80) for one in row.channels.filter(group=None)[:MOST_CHANNELS]) or EMPTY

    @admin.display(description=_("Recipients"))
    def to(self, row: Reminder) -> str:
        """The first further address, and the number of the others; users and groups are counted on the page only."""
        lines = row.recipients.splitlines()
        return first_line(row.recipients, 60) + (f" +{len(lines) - 1}" if len(lines) > 1 else "")


def _letter(request: HttpRequest, row: Reminder) -> tuple[Letter, Scheduler | None]:
    """The letter to the user, as the first schedule of the reminder that the user sees would send it."""
    visible = visibility_of(request.user)
    scheduler = visible.schedules().filter(reminder=row.pk).order_by("-status", "pk").first()
    at = scheduler.next_run_at if scheduler is not None and scheduler.next_run_at is not None else clock.now()
    given = [values for values in (row.params, scheduler.params if scheduler else {}) if isinstance(values, dict)]
    params = {name: value for values in given for name, value in values.items()}
    data = message_data(row, scheduler, at, params)
    user: Any = request.user
    recipient = Recipient(str(getattr(user, "email", "") or ""), user.get_full_name() or user.get_username())
    with surroundings(data, scheduler.language if scheduler is not None else ""):
        return letter_of(row, data, recipient), scheduler


def preview(request: HttpRequest, row: Reminder) -> dict[str, Any]:
    """The template context: the letter as this user would get it, or why it cannot be written."""
    try:
        letter, scheduler = _letter(request, row)
    except MessageTemplateError as error:
        return {"error": for_reader(str(error), 400)}
    return {
        "subject": visible_text(letter.subject),
        "text": visible_text(letter.text, 20_000),
        "html": visible_text(letter.html, 20_000),
        "schedule": visible_text(scheduler, 120) if scheduler is not None else "",
    }


def _send_test(request: HttpRequest, row: Reminder, address: str) -> tuple[int, str]:
    try:
        letter, _scheduler = _letter(request, row)
        with Mailer() as mailer:
            name = message_id(f"test-{row.pk}-{clock.now().timestamp()}")
            mailer.send(address, letter, name, MAIL_SECONDS)
    except (MessageTemplateError, Refused, NotSent, Unsure) as error:
        return messages.ERROR, _t("It was not sent. %(error)s") % {"error": for_reader(str(error), 400)}
    return messages.SUCCESS, _t("It was sent to %(address)s.") % {"address": visible_text(address)}
