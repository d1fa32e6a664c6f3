"""The form of a channel. Address and secret are write-only: the form takes new ones and never shows the stored ones."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from scheduling.models import Channel
from scheduling.models.channel import ADDRESS_LENGTH, MOST_ADDRESSES
from scheduling.notify import webhook
from scheduling.notify.addresses import checked_lines
from scheduling.notify.chat import check_address
from scheduling.notify.chat_address import ChatAddressError
from scheduling.notify.webhook_secret import LONGEST, check_secret, make_secret

FIELD, SECRET, MAKE = "new_address", "new_secret", "make_secret"
"""The names of fields. They are no columns of the model, so code that handles columns never gets their values."""

Kind = Channel.Kind

ADDRESS_HELP = _(
    "Chat: an address of apprise, such as slack://TokenA/TokenB/TokenC or tgram://BotToken/ChatId, or the address that "
    "Slack, Discord, Teams, Google Chat, Webex or Mattermost shows. Webhook: the address of a program of your own, "
    "such as https://example.com/cron. It can also be the name of an environment variable, such as ${CRON_CHAT_TEAM} "
    "or ${CRON_WEBHOOK_URL}. The address is a secret. No page shows it again."
)
SECRET_HELP = _(
    "It signs the messages to the webhook. If the field is empty, a secret is made and shown once. It can also be the "
    "name of an environment variable, such as ${CRON_WEBHOOK_SECRET}."
)


def _write_only(length: int) -> dict[str, Any]:
    # A password field is never filled again, so the page of a refused form does not repeat the value either.
    attributes = {"autocomplete": "new-password", "class": "vTextField"}
    widget = forms.PasswordInput(render_value=False, attrs=attributes)
    return {"required": False, "max_length": length, "widget": widget}


class ChannelForm(forms.ModelForm):
    """Asks for the kind of a new channel, and for what this kind needs. A stored channel keeps its kind.

    The values of fields that belong to another kind are ignored: the page may have hidden them after they were typed.
    """

    new_address = forms.CharField(label=_("Address"), **_write_only(ADDRESS_LENGTH))
    new_secret = forms.CharField(label=_("Secret"), **_write_only(LONGEST))
    make_secret = forms.BooleanField(
        label=_("Make a new secret"), required=False, help_text=_("It replaces the stored secret, and is shown once.")
    )

    needs_group = False
    """Whether the user may add only channels of a group: the user does not see all groups. The page sets it."""

    class Meta:
        model = Channel
        fields = ("name", "description", "kind", "recipients", "tells_by_default", "least_severity", "group")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        stored = self.instance
        if self.needs_group and "group" in self.fields:
            self.fields["group"].required = True
        if "least_severity" in self.fields:
            self.fields["least_severity"].required = False  # a request without it takes the model's default
        if FIELD in self.fields:
            field = self.fields[FIELD]
            if stored.address:
                field.label = _("New address")
                field.help_text = _("It replaces the stored address. If the field is empty, the address stays.")
            else:
                field.help_text = ADDRESS_HELP
        if SECRET in self.fields:
            if stored.secret:
                self.fields[SECRET].label = _("New secret")
                self.fields[SECRET].help_text = _("It replaces the stored secret. If the field is empty, it stays.")
            else:
                self.fields[SECRET].help_text = SECRET_HELP

    @property
    def kind(self) -> str:
        """The chosen kind, or the kind of the stored channel."""
        return str(self.cleaned_data.get("kind") or self.instance.kind)

    def clean(self) -> dict[str, Any]:
        """Checks what the kind needs. Each error is a sentence at its field, without the address or the secret."""
        cleaned = super().clean() or self.cleaned_data
        check = {Kind.CHAT: self._check_chat, Kind.WEBHOOK: self._check_webhook, Kind.EMAIL: self._check_email}
        if "kind" not in self.errors and self.kind in check:
            check[Kind(self.kind)]()
        return cleaned

    def _check_chat(self) -> None:
        self._check_typed(FIELD, check_address, is_needed=not self.instance.address)
        self.cleaned_data |= {SECRET: "", MAKE: False, "recipients": ""}

    def _check_webhook(self) -> None:
        self._check_typed(FIELD, webhook.check_url, is_needed=not self.instance.address)
        self._check_typed(SECRET, check_secret)
        if self.cleaned_data.get(SECRET) and self.cleaned_data.get(MAKE):
            self.add_error(MAKE, ValidationError(_("Type a secret or have one made, not both."), code="both"))
        if SECRET in self.fields and not (self.cleaned_data.get(SECRET) or self.instance.secret):
            self.cleaned_data[MAKE] = True
        self.cleaned_data["recipients"] = ""

    def _check_email(self) -> None:
        if "recipients" in self.fields and "recipients" not in self.errors:
            try:
                lines = checked_lines(self.cleaned_data.get("recipients") or "", MOST_ADDRESSES)
                if not lines:
                    raise ValidationError(_("Give at least one e-mail address."), code="required")
                self.cleaned_data["recipients"] = lines
            except ValidationError as error:
                self.add_error("recipients", error)
        self.cleaned_data |= {FIELD: "", SECRET: "", MAKE: False}

    def _check_typed(self, name: str, check: Any, is_needed: bool = False) -> None:
        """Check the value of a write-only field."""
        if name not in self.fields or name in self.errors:
            return
        typed = self.cleaned_data[name] = str(self.cleaned_data.get(name) or "").strip()
        try:
            if typed:
                check(typed)
            elif is_needed:
                raise ValidationError(self.fields[name].error_messages["required"], code="required")
        except ChatAddressError as error:
            self.add_error(name, ValidationError(str(error), code="address"))
        except ValidationError as error:
            self.add_error(name, error)

    def save(self, commit: bool = True) -> Any:
        """Stores the new address and the new secret. A made secret is also the attribute `made_secret` of the row."""
        row, typed = self.instance, self.cleaned_data
        row.made_secret = make_secret() if typed.get(MAKE) else ""
        row.address = typed.get(FIELD) or row.address
        row.secret = row.made_secret or typed.get(SECRET) or row.secret
        # What another kind has left behind is of no use, and a secret that is of no use need not be stored.
        if row.kind == Kind.EMAIL:
            row.address = ""
        if row.kind in (Kind.EMAIL, Kind.CHAT):
            row.secret = ""
        return super().save(commit)
