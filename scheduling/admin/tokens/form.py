"""The form of a new API token. It checks what `make_token` checks, and makes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from django import forms
from django.contrib.auth.models import Permission
from django.utils import timezone as clock
from django.utils.translation import gettext_lazy as _

from scheduling.admin.tokens.permission_words import permission_words
from scheduling.models import ApiToken
from scheduling.models.edited import has_use
from scheduling.operations.tokens import TokenRefused, check_token

CHOSEN = "chosen"
"""The name of the field that stands for the column `permissions`."""

APPS = ("scheduling", "cron_reports")
"""The form offers the permissions of these apps. Other ones need code."""

LASTS = timedelta(days=90)


class TokenForm(forms.ModelForm):
    """Asks for the name, the expiry and what the token may do."""

    user: Any = None
    """The owner of the token, who fills it in. The page sets it."""

    chosen = forms.MultipleChoiceField(
        label=_("Permissions"),
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text=_("None chosen: all that you may do, now and later. A token never allows more than that."),
    )

    class Meta:
        model = ApiToken
        fields = ("name", "expires_at", "read_only")
        help_texts = {
            "name": _("What uses the token, such as “release pipeline”. Each token of a user has another name."),
            "expires_at": _("Empty: it does not expire."),
            "read_only": _("The token changes nothing and runs nothing."),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if CHOSEN not in self.fields:
            return  # the page of a stored token has no form
        self.fields[CHOSEN].choices = sorted(own_permissions(self.user), key=lambda each: each[1])  # type: ignore[attr-defined]
        self.initial.setdefault("expires_at", (clock.now() + LASTS).replace(second=0, microsecond=0))
        # Django's widget writes the two words beside its inputs, but not as their labels.
        inputs = getattr(self.fields["expires_at"].widget, "widgets", ())
        for widget, label in zip(inputs, (_("Date"), _("Time")), strict=False):
            widget.attrs["aria-label"] = label

    def clean_name(self) -> str:
        """The name in one line, as `make_token` stores it."""
        return " ".join(str(self.cleaned_data["name"]).split())

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        if not self.errors:
            try:
                check_token(
                    self.user, cleaned["name"], permissions=cleaned[CHOSEN] or None, expires_at=cleaned["expires_at"]
                )
            except TokenRefused as refused:
                name = {"permissions": CHOSEN}.get(refused.field, refused.field)
                self.add_error(name if name in self.fields else None, str(refused))
        return cleaned


def own_permissions(user: Any) -> Iterator[tuple[str, str]]:
    """The permissions that the user has and a token may be limited to, as pairs of name and label."""
    rows = Permission.objects.filter(content_type__app_label__in=APPS).select_related("content_type")
    for row in rows.order_by("content_type__app_label", "name", "pk"):
        name = f"{row.content_type.app_label}.{row.codename}"
        if has_use(row.codename, row.content_type.model) and user.has_perm(name):
            yield name, permission_words(row)
