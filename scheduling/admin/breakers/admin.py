"""The pages of circuit breakers: what each of them does, why, and the button that lets the waiting runs go on."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils import timezone as clock
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _

from scheduling.admin.common.pages import Page
from scheduling.admin.common.read_only import ReadOnly
from scheduling.admin.common.safe_text import sentence_column
from scheduling.admin.common.viewer import Viewer
from scheduling.admin.ui.badges import breaker_badge
from scheduling.admin.ui.links import admin_url
from scheduling.admin.ui.times import EMPTY, time_with_relative
from scheduling.core.breaker import BreakerState, Circuit
from scheduling.core.known_sentences import for_reader
from scheduling.core.words import decimal
from scheduling.execution.breakers import change_circuit
from scheduling.handlers.permission import refusal
from scheduling.handlers.targets import handler_named
from scheduling.models import Breaker
from scheduling.operations.audit import record
from scheduling.operations.params_diff import Change


@admin.register(Breaker)
class BreakerAdmin(ReadOnly):
    """The pages are read-only, because the consumers write the rows. Their errors come from the runs of all groups."""

    change_form_template = "admin/scheduling/breaker/change_form.html"
    list_display = (
        "subject_shown",
        "state_shown",
        "since_shown",
        sentence_column(Breaker, "reason"),
        sentence_column(Breaker, "error"),
    )
    readonly_fields = (
        "subject_shown", "state_shown", "since_shown", "reason_shown", "error_shown", "rules", "probed", "openings",
    )  # fmt: skip
    fields = readonly_fields
    actions = None
    # The open ones stand first: open, half open, closed.
    ordering = ("-state", "type", "name")  # type: ignore[assignment]  # the base has one name
    no_rows = _("A handler with the option “breaker” is listed here when its first run has ended.")
    pages: tuple[Page, ...] = (Page("reset", "pause", methods=("POST",)),)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_view_permission(request, obj) and not Viewer.of(request).visible.is_limited

    def has_pause_permission(self, request: HttpRequest) -> bool:
        return Viewer.of(request).may_pause_work

    def reset_view(self, request: HttpRequest, row: Breaker) -> HttpResponse:
        """POST makes it half open: what the runs need is back, says the user, and those that wait start at the pace."""
        now = clock.now()

        def edit(circuit: Circuit) -> Circuit:
            return circuit.half_opened(now) if circuit.state is BreakerState.OPEN else circuit

        before, after = change_circuit(row.type, row.name, edit, now)
        if after.state is not before.state:
            record(request, [row], "reset", [Change("state", before.state.value, after.state.value)])
            self.message_user(request, _t("%(subject)s: the runs go on.") % {"subject": row.subject}, messages.SUCCESS)
        else:
            self.message_user(request, _t("It is not open."), messages.WARNING)
        return HttpResponseRedirect(admin_url("scheduling_breaker_changelist"))

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any) -> HttpResponse:
        """Adds the button that lets the runs go on."""
        row = context.get("original")
        if row is not None:
            context["refusal"] = refusal(request.user, row)
            if row.state == BreakerState.OPEN and self.has_pause_permission(request) and not context["refusal"]:
                context["reset"] = admin_url("scheduling_breaker_reset", row.pk)
        return super().render_change_form(request, context, *args, **kwargs)

    @admin.display(description=_("handler"))
    def subject_shown(self, row: Breaker) -> str:
        return row.subject

    @admin.display(description=_("state"))
    def state_shown(self, row: Breaker) -> SafeString:
        return breaker_badge(row.state)

    @admin.display(description=_("since"))
    def since_shown(self, row: Breaker) -> str:
        return EMPTY if row.since is None else time_with_relative(row.since)

    @admin.display(description=_("reason"))
    def reason_shown(self, row: Breaker) -> str:
        return for_reader(row.reason, 300) or EMPTY

    @admin.display(description=_("last error"))
    def error_shown(self, row: Breaker) -> str:
        return for_reader(row.error, 400) or EMPTY

    @admin.display(description=_("last probe"))
    def probed(self, row: Breaker) -> str:
        return EMPTY if row.probed_at is None else time_with_relative(row.probed_at)

    @admin.display(description=_("rules"))
    def rules(self, row: Breaker) -> str:
        """The option of the handler, in words."""
        handler = handler_named(row.type, row.name)
        if handler is None or handler.breaker is None:
            return _t("The code of this site has no circuit breaker for it.")
        rules = handler.breaker
        return _t(
            "It opens when %(share)s %% of at least %(least)s runs within %(window)s s have failed. Open, it lets one "
            "run through every %(every)s s. When it has succeeded, the others start: at most %(pace)s each second."
        ) % {
            "share": decimal(f"{rules.share * 100:g}"), "least": rules.least, "window": decimal(f"{rules.window:g}"),
            "every": decimal(f"{rules.probe_every:g}"), "pace": decimal(f"{rules.pace:g}"),
        }  # fmt: skip
