"""Backfill: a button on a schedule's page, and an action on the list. The first page asks for the range, the second one
shows what would run, and its button starts it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import NON_FIELD_ERRORS
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils import timezone as clock
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from scheduling.admin.common.batches import allowed_only
from scheduling.admin.common.confirm import Confirmation, action_fields, key_of, new_key, reason_field
from scheduling.admin.common.pages import Page, Pages
from scheduling.admin.schedulers.wall_clock import WallClockField
from scheduling.admin.ui.badges import state_badge
from scheduling.admin.ui.links import admin_url, execution_link, list_url, scheduler_url
from scheduling.core.backfill import MOST_SCHEDULES, PER_MINUTE, REASON_LENGTH, USUAL_PER_MINUTE, Options, Standing
from scheduling.core.targets import TARGETS
from scheduling.core.text import visible_text
from scheduling.core.words import quoted
from scheduling.execution.backfill_record import Recorded
from scheduling.handlers.permission import refused_schedules
from scheduling.models import Scheduler
from scheduling.operations import backfills
from scheduling.operations.actor import Actor
from scheduling.operations.backfill_plan import BackfillPlan, digest, plan, typed_range, warnings
from scheduling.operations.refused import Refused
from scheduling.operations.schedule_words import zone_of
from scheduling.operations.times import format_minute

SHOWN = 60
"""The second page lists at most this many instants, or schedules."""
OLDEST, NEWEST = "oldest", "newest"
ACTION = "backfill_selected"
SEEN = "seen"


class BackfillForm(forms.Form):
    """Asks for the range, and how its runs are made."""

    since = WallClockField(label=gettext_lazy("From"))
    until = WallClockField(label=gettext_lazy("Until"), help_text=gettext_lazy("This time belongs to the range."))
    order = forms.ChoiceField(
        label=gettext_lazy("Order"),
        choices=[(OLDEST, gettext_lazy("the oldest first")), (NEWEST, gettext_lazy("the newest first"))],
    )
    per_minute = forms.IntegerField(
        label=gettext_lazy("Runs per minute"), initial=USUAL_PER_MINUTE, min_value=PER_MINUTE[0],
        max_value=PER_MINUTE[1], help_text=gettext_lazy("At most so many runs are made in a minute."),
    )  # fmt: skip
    obey_overlap = forms.BooleanField(
        label=gettext_lazy("Obey the overlap policy"), required=False, initial=True,
        help_text=gettext_lazy("If the schedule runs alone, each run waits until the one before is over."),
    )  # fmt: skip
    also_ran = forms.BooleanField(
        label=gettext_lazy("Also run what has run"), required=False,
        help_text=gettext_lazy("Run an occurrence once more that the schedule has run by itself."),
    )  # fmt: skip
    reason = reason_field(REASON_LENGTH, gettext_lazy("Optional. Shown to your colleagues."), required=False)

    def clean_reason(self) -> str:
        return " ".join(self.cleaned_data["reason"].split())[:REASON_LENGTH]

    @property
    def options(self) -> Options:
        """How the runs are made. The form is valid."""
        data = self.cleaned_data
        return Options(
            data["order"] == NEWEST, data["per_minute"], data["obey_overlap"], data["also_ran"], data["reason"]
        )

    @property
    def posted(self) -> list[tuple[str, str]]:
        """The values as hidden fields of the next page."""
        names = ("since_0", "since_1", "until_0", "until_1", "order", "per_minute", "obey_overlap", "also_ran")
        pairs = [(name, str(self.data[name])) for name in names if name in self.data]
        return [*pairs, ("reason", self.cleaned_data["reason"])]


class BackfillPages(Pages):
    """The page "Backfill" of a schedule, and the action "Backfill selected" of the list."""

    pages: tuple[Page, ...] = (Page("backfill", "backfill"),)

    def has_backfill_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm(backfills.BACKFILL)

    def backfill_view(self, request: HttpRequest, row: Scheduler) -> HttpResponse:
        """GET asks for the range. POST shows what would run, and then starts it."""
        back = scheduler_url(row.pk)
        crumbs = [(back, visible_text(row, 120))]
        return self._answered(request, [row], {"back": back, "crumbs": crumbs}, [])

    @admin.action(permissions=["backfill"], description=gettext_lazy("Backfill selected"))
    def backfill_selected(self, request: HttpRequest, queryset: QuerySet[Scheduler]) -> HttpResponse | None:
        queryset = allowed_only(self, request, queryset, refused_schedules(request.user))
        rows = list(queryset.order_by("pk").prefetch_related(*TARGETS)[: MOST_SCHEDULES + 1])
        page: dict[str, Any] = {"back": request.get_full_path()}
        hidden = action_fields(request, ACTION)
        if len(rows) > MOST_SCHEDULES or not rows:
            many = _("At most %(most)d schedules can be backfilled at once. Choose fewer, or narrow the filter.")
            said = many % {"most": MOST_SCHEDULES} if rows else _("None of them can be backfilled.")
            return Confirmation(title=_("Backfill"), lead=said, submit="", blocked=True, **page).response(request, self)
        return self._answered(request, rows, page, hidden)

    def _answered(
        self, request: HttpRequest, rows: Sequence[Scheduler], page: dict[str, Any], hidden: list[tuple[str, Any]]
    ) -> HttpResponse:
        now, is_posted = clock.now(), "since_0" in request.POST
        form = BackfillForm(request.POST) if is_posted else BackfillForm(initial=_usual_range(rows[0], now))
        if is_posted and form.is_valid():
            plans = _plans(Actor(request.user), rows, form, now)
            if plans:
                seen = digest(plans)
                if request.POST.get(SEEN) == seen:
                    return self._start(request, plans, form)
                changed = bool(request.POST.get(SEEN))
                return self._dry_run(request, plans, form, page, hidden, seen, changed)
        names = ngettext("%(count)d schedule", "%(count)d schedules", len(rows)) % {"count": len(rows)}
        name = quoted(visible_text(rows[0], 120)) if len(rows) == 1 else names
        lead = _("%(name)s: choose a range of past times. The next page shows what would run. Nothing runs yet.")
        zone = _("The times are those of the zone %(zone)s.") % {"zone": zone_of(rows[0]).key}
        own = _("The times are read in the zone of each schedule.")
        return Confirmation(
            title=_("Backfill"), lead=f"{lead % {'name': name}} {zone if len(rows) == 1 else own}",
            submit=_("Show what would run"), form=form, hidden=hidden,
            error=" ".join(map(str, form.non_field_errors())) if is_posted else "", **page,
        ).response(request, self)  # fmt: skip

    def _dry_run(
        self, request: HttpRequest, plans: Sequence[BackfillPlan], form: BackfillForm, page: dict[str, Any],
        hidden: list[tuple[str, Any]], seen: str, changed: bool,
    ) -> HttpResponse:  # fmt: skip
        new, total = sum(plan.new for plan in plans), sum(plan.total for plan in plans)
        said = ngettext(
            "%(count)d run will be made, of %(total)d instants in the range.",
            "%(count)d runs will be made, of %(total)d instants in the range.",
            new,
        )
        found = [text for plan in plans for text in warnings(plan)] if len(plans) == 1 else _warnings(plans)
        if changed:
            found.insert(0, _("The instants have changed since you looked. Look again before you confirm."))
        lines = list(_lines(plans))
        return Confirmation(
            title=_("Backfill: what would run"),
            lead=said % {"count": new, "total": total},
            submit=_("Start the backfill"),
            facts=_facts(plans, form.options),
            warnings=found,
            samples=lines[:SHOWN],
            some=_("The first of them"),
            more=max(len(lines) - SHOWN, 0),
            hidden=[*hidden, *form.posted, (SEEN, seen), ("key", new_key())],
            blocked=not new,
            **page,
        ).response(request, self)

    def _start(self, request: HttpRequest, plans: Sequence[BackfillPlan], form: BackfillForm) -> HttpResponse:
        try:
            started = backfills.start(Actor(request.user), plans, form.options, key_of(request))
        except Refused as refused:
            self.message_user(request, refused.said, messages.ERROR)
            return HttpResponseRedirect(list_url("scheduler"))
        count = sum(row.total for row in started.rows)
        said = ngettext(
            "The backfill of %(count)d instant is started.", "The backfill of %(count)d instants is started.", count
        )
        self.message_user(request, said % {"count": count}, messages.SUCCESS)
        own = admin_url("scheduling_backfill_change", started.rows[0].pk)
        return HttpResponseRedirect(own if len(started.rows) == 1 else list_url("backfill"))


def _usual_range(row: Scheduler, now: datetime) -> dict[str, datetime]:
    """The day before and today until now, on the clock of the schedule."""
    local = now.astimezone(zone_of(row)).replace(tzinfo=None, second=0, microsecond=0)
    return {"since": (local - timedelta(days=1)).replace(hour=0, minute=0), "until": local}


def _plans(actor: Actor, rows: Sequence[Scheduler], form: BackfillForm, now: datetime) -> list[BackfillPlan]:
    """The plans of the schedules. If one is refused, the form has the errors, and there are none."""
    since, until = (f"{form.cleaned_data[name]:%Y-%m-%d %H:%M}" for name in ("since", "until"))
    found: list[BackfillPlan] = []
    for row in rows:
        try:
            found.append(plan(actor, row, *typed_range(row, since, until, now), form.options, now))
        except Refused as refused:
            name = "" if len(rows) == 1 else f"{visible_text(row, 80)}: "
            for problem in refused.problems:
                field = {"from": "since"}.get(problem.field, problem.field)
                form.add_error(field if field in form.fields else NON_FIELD_ERRORS, f"{name}{problem.message}")
            if not refused.problems:
                form.add_error(None, f"{name}{refused.said}")
            return []
    return found


def _warnings(plans: Sequence[BackfillPlan]) -> list[str]:
    """What an operator should know of several schedules: each warning with the names of the first schedules."""
    found: dict[str, list[str]] = {}
    for one in plans:
        for text in warnings(one):
            found.setdefault(text, []).append(visible_text(one.schedule, 60))
    return [f"{', '.join(names[:3])}{', …' if names[3:] else ''}: {text}" for text, names in found.items()][:10]


def _facts(plans: Sequence[BackfillPlan], options: Options) -> list[tuple[Any, Any]]:
    counts = {standing: sum(plan.counts[standing] for plan in plans) for standing in Standing}
    only = plans[0] if len(plans) == 1 else None
    info = zone_of(only.schedule) if only is not None else None
    found: list[tuple[Any, Any]] = []
    if only is not None:
        found += [(_("From"), format_minute(only.since, info)), (_("Until"), format_minute(only.until, info))]
    found += [
        (_("Will run"), counts[Standing.NEW]),
        (_("Have run already"), counts[Standing.RAN]),
        (_("Made by an earlier backfill"), counts[Standing.MADE]),
        (_("Order"), _("the newest first") if options.newest_first else _("the oldest first")),
        (_("Runs per minute"), options.per_minute),
        (_("Overlap policy"), _("obeyed") if options.obey_overlap else _("not obeyed")),
    ]
    return [*found, (_("Reason"), visible_text(options.reason))] if options.reason else found


def _lines(plans: Sequence[BackfillPlan]) -> list[Any]:
    if len(plans) > 1:
        return [_of_schedule(one) for one in plans]
    info = zone_of(plans[0].schedule)
    return [_line(format_minute(at, info), standing, row) for at, standing, row in plans[0].lines()]


def _of_schedule(one: BackfillPlan) -> str:
    counts = one.counts
    facts = {standing.value: counts[standing] for standing in Standing}
    said = _("%(name)s: %(new)d will run, %(ran)d have run, %(made)d were made by an earlier backfill")
    return said % {**facts, "name": visible_text(one.schedule, 120)}


def _line(at: str, standing: Standing, row: Recorded | None) -> SafeString | str:
    if row is None:
        return at if standing is Standing.NEW else f"{at} {_('is on record already')}"
    words = {
        Standing.NEW: _("runs again; it has run as"),
        Standing.RAN: _("has run as"),
        Standing.MADE: _("an earlier backfill has made"),
    }[standing]
    return format_html("{} {} {} {}", at, words, execution_link(row.pk), state_badge(row.state))
