"""The fields of a schedule's ping URL. The URL is a secret: the form takes a new one and never shows the stored one."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from scheduling.core.pings import URL_LENGTH
from scheduling.core.text import visible_text
from scheduling.operations.audit import ping_url_edits
from scheduling.operations.params_diff import Change
from scheduling.pings.address import problem, shown

PING_URL, REMOVE_PING_URL = "new_ping_url", "remove_ping_url"
"""The names of the fields. They are no columns, so nothing that handles columns in general gets their values."""


class PingFields(forms.ModelForm):
    """The part of the form of a schedule that asks for a ping URL. An empty field keeps the stored URL."""

    new_ping_url = forms.CharField(
        label=_("Ping URL"),
        required=False,
        max_length=URL_LENGTH,
        # A password field is never filled again, so the page of a refused form does not repeat the URL either.
        widget=forms.PasswordInput(render_value=False, attrs={"autocomplete": "new-password", "class": "vTextField"}),
        help_text=_(
            "The address of a check of Healthchecks, or of a monitor like it. It is told when a run starts, succeeds "
            "or fails. Or the name of an environment variable, such as ${CRON_PING_NIGHTLY}. The URL is a secret. No "
            "page shows it again."
        ),
    )
    remove_ping_url = forms.BooleanField(label=_("Remove the ping URL"), required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._former_ping_url = stored = self.instance.ping_url
        if PING_URL not in self.fields:
            return  # a user who may only view
        if self.instance.pk and stored:
            self.fields[PING_URL].label = _("New ping URL")
            said = _("A ping URL is set: %(url)s. A new one replaces it. If the field is empty, it stays.")
            self.fields[PING_URL].help_text = said % {"url": visible_text(shown(stored), 120)}
        else:
            self.fields[REMOVE_PING_URL].widget = forms.HiddenInput()

    def clean_new_ping_url(self) -> str:
        """The typed URL. Raises an error with a sentence if it cannot be called."""
        url = str(self.cleaned_data[PING_URL] or "").strip()
        if url and (said := problem(url)):
            raise ValidationError(said, code="ping_url")
        return url

    def _post_clean(self) -> None:
        if self.cleaned_data.get(REMOVE_PING_URL):
            self.instance.ping_url = ""
        if url := self.cleaned_data.get(PING_URL):
            self.instance.ping_url = url
        super()._post_clean()  # type: ignore[misc]

    def with_ping_url(self, edits: list[Change]) -> list[Change]:
        """The edits of the form, with that of the column in place of those of the two fields."""
        others = [edit for edit in edits if edit.name not in (PING_URL, REMOVE_PING_URL)]
        return [*others, *ping_url_edits(self._former_ping_url, self.instance.ping_url)]
