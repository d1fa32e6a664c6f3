"""The answer to a confirmation page of the inbox: what the page showed, and what the operator filled in."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from scheduling.admin.common.confirm import reason_field
from scheduling.admin.ui.text import is_number
from scheduling.models import FailedExecution
from scheduling.models.counts import count_of_state


@dataclass(frozen=True)
class Answer:
    """The values that the POST of a confirmation page sends back.

    Args:
        posted: whether the POST comes from the confirmation page. If not, the confirmation page is shown next.
        across: True if the operator means all rows that match the filter and search in the URL; False if the operator
            means only the ticked rows.
        at: when the confirmation page was made. Executions that failed later were not on the page, so the action
            does not change them.
        count: the number of selected rows that the page stated; None if the page stated no number.
        same_query: whether this request has the same filter and search as the confirmation page.
        start: when the next execution of a spread republish is due, if an earlier request has done a part of it.
    """

    posted: bool
    across: bool
    at: datetime | None
    count: int | None
    same_query: bool
    start: datetime | None = None

    @classmethod
    def of(cls, request: HttpRequest) -> Answer:
        """The answer that a POST contains. Malformed values are ignored."""
        post, count = request.POST, request.POST.get("count", "")
        return cls(
            posted=bool(post.get("post")),
            across=post.get("select_across") == "1",
            at=_instant(post.get("asked_at", "")),
            count=int(count) if is_number(count, 9) else None,
            same_query=post.get("query", "") == request.GET.urlencode(),
            start=_instant(post.get("start", "")),
        )

    def rows(self, queryset: QuerySet[FailedExecution]) -> QuerySet[FailedExecution]:
        """The rows of a selection that had already failed when the confirmation page was made."""
        if self.at is None:
            return queryset
        return queryset.filter(Q(finished_at__lte=self.at) | Q(finished_at__isnull=True))

    def difference(self, queryset: QuerySet[FailedExecution]) -> str:
        """A sentence that says how the selection changed after the confirmation page was made.

        The result is empty if the selection did not change. The result is also empty if the selection became smaller,
        because then no new confirmation is needed.
        """
        if not self.posted or not self.across:
            return ""
        if not self.same_query:
            return _("The filter has changed since you saw the list. This is what matches now.")
        now = count_of_state(self.rows(queryset))
        if self.count is None or now > self.count:
            return _("%(now)d match now; you saw %(seen)d. Please check again.") % {"now": now, "seen": self.count or 0}
        return ""


class InboxForm(forms.Form):
    """The questions of the confirmation page. For a large selection, the operator must type the number of rows.

    Args:
        across: True if the operator means all rows that match; False if the operator means only the ticked rows.
        count: the number of selected rows that the page states.
    """

    type_above = 100
    type_ticked = False
    """Whether the number must be typed for ticked rows, too."""

    def __init__(self, across: bool, count: int, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.count = count
        if (across or self.type_ticked) and count > self.type_above:
            self.fields["typed"] = forms.CharField(
                label=_("Type %(count)s to confirm") % {"count": count},
                widget=forms.TextInput(attrs={"inputmode": "numeric", "autocomplete": "off", "maxlength": 20}),
                error_messages={"required": _("Type %(count)d to confirm.") % {"count": count}},
            )

    def clean_typed(self) -> str:
        """Refuses a number that is not `count`. Spaces between the digits are ignored."""
        typed: str = self.cleaned_data["typed"]
        if "".join(typed.split()) != str(self.count):
            raise ValidationError(self.fields["typed"].error_messages["required"], code="typed")
        return typed


class RepublishForm(InboxForm):
    """Asks how to spread the executions over time, and whether a canary goes first.

    For a single execution, the form does not ask for a canary.
    """

    minutes = forms.IntegerField(
        label=gettext_lazy("Spread over (minutes)"),
        help_text=gettext_lazy("0: all at once. Otherwise spread evenly over this time."),
        initial=0,
        required=False,
        min_value=0,
        max_value=24 * 60,
        error_messages=dict.fromkeys(
            ("invalid", "min_value", "max_value"), gettext_lazy("Enter a whole number of minutes from 0 to 1440.")
        ),
    )
    canary = forms.BooleanField(
        label=gettext_lazy("Canary: run one first, and the others only if it succeeds"),
        help_text=gettext_lazy(
            "The oldest one runs at once. If it fails or is cancelled, the others stay in the inbox. If you have "
            "chosen runs of several targets, the canary tests only one of them."
        ),
        required=False,
    )
    canary_from = 20
    """From so many executions on, the canary is ticked by default."""

    def __init__(self, across: bool, count: int, *args: Any, **options: Any) -> None:
        super().__init__(across, count, *args, **options)
        self.fields["canary"].initial = count >= self.canary_from
        if count == 1:
            del self.fields["canary"]
            if not self.data.get("start"):  # the last one of a spread republish still waits for its turn
                del self.fields["minutes"]


class ReasonForm(forms.Form):
    """Asks for the reason of a discard."""

    reason = reason_field(
        1_500,
        gettext_lazy("Stored with each discarded run."),
        error_messages={"required": gettext_lazy("Enter a reason. Without a reason, nothing is discarded.")},
    )


class OneReasonForm(ReasonForm):
    """Asks for the reason of the discard of a single execution."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields["reason"].help_text = _("Stored with the discarded run.")


class DiscardForm(ReasonForm, InboxForm):
    """A discard cannot be undone, so the number must be typed for smaller selections, too."""

    type_above = 20
    type_ticked = True


def _instant(text: str) -> datetime | None:
    try:
        found = parse_datetime(text)
    except ValueError:
        return None
    return found if found is not None and found.tzinfo is not None else None
