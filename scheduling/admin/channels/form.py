"""The form of a channel. The address is write-only: the form takes a new one and never shows the stored one."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from scheduling.models import Channel
from scheduling.models.channel import ADDRESS_LENGTH
from scheduling.notify.chat import check_address
from scheduling.notify.chat_address import ChatAddressError

FIELD = "new_address"
"""The name of the field. It is no column of the model, so nothing that handles columns in general gets its value."""


class ChannelForm(forms.ModelForm):
    """Asks for the address of a new channel. An empty field keeps the address of a stored channel."""

    new_address = forms.CharField(
        label=_("Address"),
        required=False,
        max_length=ADDRESS_LENGTH,
        # A password field is never filled again, so the page of a refused form does not repeat the address either.
        widget=forms.PasswordInput(render_value=False, attrs={"autocomplete": "new-password", "class": "vTextField"}),
        help_text=_(
            "An address of apprise, such as slack://TokenA/TokenB/TokenC or tgram://BotToken/ChatId. Or the address of "
            "a webhook that Slack, Discord, Teams, Google Chat, Webex or Mattermost shows. Or the name of an "
            "environment variable, such as ${CRON_CHAT_TEAM}. The address is a secret. No page shows it again."
        ),
    )

    class Meta:
        model = Channel
        fields = ("name", "description")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if FIELD not in self.fields:
            return
        if self.instance.address:
            self.fields[FIELD].label = _("New address")
            self.fields[FIELD].help_text = _(
                "It replaces the stored address. If the field is empty, the address stays."
            )
        else:
            self.fields[FIELD].required = True

    def clean_new_address(self) -> str:
        """The typed address. Raises an error with a sentence if no message can be sent to it."""
        address = str(self.cleaned_data[FIELD] or "").strip()
        if address:
            try:
                check_address(address)
            except ChatAddressError as error:
                raise ValidationError(str(error), code="address") from None
        return address

    def save(self, commit: bool = True) -> Any:
        if address := self.cleaned_data.get(FIELD):
            self.instance.address = address
        return super().save(commit)
