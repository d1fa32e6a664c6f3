"""The form of a pause: what is paused, why, and until when."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils import timezone as clock
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _

from scheduling.admin.common.confirm import reason_field
from scheduling.admin.common.kept_instant_field import KeptInstantField
from scheduling.core.pauses import REASON_LENGTH, Scope
from scheduling.core.queues import MAIN, STANDALONE
from scheduling.core.targets import TARGET_KINDS
from scheduling.core.text import visible_text
from scheduling.handlers import handlers
from scheduling.handlers.permission import lacks
from scheduling.handlers.queues import queues_in_code
from scheduling.models import Pause, Scheduler

MOST_QUEUES = 200

WHAT = "what"
"""The name of the field that says what is paused. It stands for the columns scope, type and name."""

SITE = Scope.SITE.value


def choice_of(scope: str, type_: str = "", name: str = "") -> str:
    """The value of the field `WHAT`, such as `handler:worker:sync_tokens`. Names of types have no colon."""
    return {Scope.SITE: SITE, Scope.QUEUE: f"{scope}:{name}"}.get(Scope(scope), f"{scope}:{type_}:{name}")


def choices(user: Any) -> list[tuple[Any, Any]]:
    """What the user can pause: registered handlers, and the queues that code or a schedule names."""
    code = [
        (choice_of(Scope.HANDLER, each.type, each.name), f"{each.type} {each.name}")
        for each in handlers()
        if not lacks(user, each)
    ]
    shared = [
        (choice_of(Scope.HANDLER, type_, kind.handler), f"{type_} {kind.handler}")
        for type_, kind in TARGET_KINDS.items()
        if kind.handler
    ]
    found = Scheduler.objects.exclude(queue="").order_by().values_list("queue", flat=True).distinct()[:MOST_QUEUES]
    queues = sorted({MAIN, STANDALONE, *queues_in_code(), *(name for name in found if isinstance(name, str))})
    return [
        ("", "---------"),
        (SITE, _t("Everything: freeze the whole site")),
        (_t("A handler"), sorted({*code, *shared})),
        (_t("A queue"), [(choice_of(Scope.QUEUE, name=name), visible_text(name, 60)) for name in queues]),
    ]


class PauseForm(forms.ModelForm):
    """Asks what is paused if the pause is new. Of a stored pause, the reason and the end can be changed."""

    what = forms.ChoiceField(
        label=_("What"), help_text=_("What runs goes on to its end. What is due waits, and nothing is lost.")
    )
    user: Any = None
    """Who fills it in. The page sets it."""
    reason = reason_field(REASON_LENGTH, _("Shown wherever a run waits for it."))

    class Meta:
        model = Pause
        fields = ("reason", "ends_at")
        field_classes = {"ends_at": KeptInstantField}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if WHAT in self.fields:
            self.fields[WHAT].choices = choices(self.user)  # type: ignore[attr-defined]
        if "ends_at" in self.fields:
            ends: Any = self.fields["ends_at"]
            ends.stored = self.instance.ends_at
            ends.help_text = _("Empty: until a user resumes it.")
            # Django's widget writes the two words beside its inputs, but not as their labels.
            inputs = getattr(ends.widget, "widgets", ())
            for widget, label in zip(inputs, (_("Date"), _("Time")), strict=False):
                widget.attrs["aria-label"] = label

    def clean_reason(self) -> str:
        """The reason as one line, because pages show it inside a sentence."""
        return " ".join(str(self.cleaned_data["reason"]).split())[:REASON_LENGTH]

    def clean_ends_at(self) -> Any:
        """The end. Raises an error if it has passed."""
        end = self.cleaned_data["ends_at"]
        if end is not None and end <= clock.now():
            raise ValidationError(_("This time has passed."), code="past")
        return end

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        if what := cleaned.get(WHAT):
            scope, _colon, rest = what.partition(":")
            type_, _colon, name = rest.partition(":") if scope == Scope.HANDLER else ("", "", rest)
            row = self.instance
            row.scope, row.type, row.name = scope, type_, name
            same = Pause.objects.filter(scope=scope, type=type_, name=name)
            # A pause that has ended stays for a minute. It makes room for the new one.
            row.replaced = same.filter(ends_at__lte=clock.now()).values_list("pk", flat=True).first()
            if same.exclude(pk=row.replaced).exists():
                raise ValidationError(_("It is paused already. Resume it first, or change its pause."), code="paused")
        return cleaned
