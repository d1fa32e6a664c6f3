"""The pages of alert rules."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.views.main import ChangeList
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _

from scheduling.admin.alert_rules.columns import RuleColumns
from scheduling.admin.alert_rules.form import AlertRuleForm, fields_of
from scheduling.admin.alert_rules.preview import preview_of
from scheduling.admin.alert_rules.reach import reaches
from scheduling.admin.alert_rules.words import ABOUT, kind_of
from scheduling.admin.alerts.how import how_to_be_told
from scheduling.admin.alerts.told import is_muted
from scheduling.admin.common.audited import Audited
from scheduling.admin.common.confirm import Confirmation
from scheduling.admin.common.filter_bar import add_notes
from scheduling.admin.common.filters import ChoiceFilter, GroupFilter
from scheduling.admin.common.grouped_rows import ChangesOwnGroups
from scheduling.admin.common.mute_form import MuteForm
from scheduling.admin.common.own_rows import own_groups_only
from scheduling.admin.common.pages import READ, Page
from scheduling.admin.common.viewer import Viewer
from scheduling.admin.ui.autocomplete import Autocomplete, AutocompleteMany
from scheduling.admin.ui.badges import severity_badge
from scheduling.admin.ui.links import admin_url
from scheduling.admin.ui.media import page_media
from scheduling.admin.ui.times import format_minute, time_tag
from scheduling.core.alert_rules import KINDS, RuleKind
from scheduling.core.known_sentences import for_reader
from scheduling.core.text import visible_text
from scheduling.models import AlertRule
from scheduling.models.visibility import visibility_of
from scheduling.operations.actor import Actor
from scheduling.operations.alert_rules import is_own, mute_rule, unmute_rule
from scheduling.operations.alerts import ACKNOWLEDGE
from scheduling.operations.params_diff import Change

KIND = "kind"
"""The parameter of the address of a new rule."""
TEMPLATES = "admin/scheduling/alertrule"


@admin.register(AlertRule)
class AlertRuleAdmin(RuleColumns, ChangesOwnGroups, Audited):
    """A new rule begins with the choice of its kind, because each kind has other fields."""

    form = AlertRuleForm
    change_form_template = f"{TEMPLATES}/change_form.html"
    list_display = ("name_shown", "on", "threshold", "scope", "severity_shown", "tells", "muted")
    list_display_links = ("name_shown",)
    list_filter = (("enabled", admin.BooleanFieldListFilter), ("kind", ChoiceFilter), ("severity", ChoiceFilter),
                   ("group", GroupFilter))  # fmt: skip
    list_select_related = ("schedule", "group")
    search_fields = ("name",)
    ordering = ("name",)
    sortable_by = ()
    list_per_page = 100
    actions = None
    no_rows = _("A rule says of what, whom and from what threshold on to tell.")
    pages: tuple[Page, ...] = (
        Page("mute", "acknowledge"),
        Page("unmute", "acknowledge", methods=("POST",)),
        Page("would_tell", "view", methods=READ),
    )

    @property
    def media(self) -> forms.Media:
        return super().media + page_media(scripts=("choices",))

    def code_of(self, row: Any) -> None:
        """A rule names no code."""

    def get_queryset(self, request: HttpRequest) -> QuerySet[AlertRule]:
        seen = visibility_of(request.user).alert_rules()
        found: QuerySet[AlertRule] = super().get_queryset(request)
        return found.filter(pk__in=seen.order_by().values("pk")) if visibility_of(request.user).is_limited else found

    def get_changelist_instance(self, request: HttpRequest) -> ChangeList:
        """The rules of the page also know which channels they tell."""
        changelist = super().get_changelist_instance(request)
        rows = list(changelist.result_list)
        found = reaches(rows, visibility_of(request.user))
        for row in rows:
            row.reach = found[row.pk]
        changelist.result_list = rows
        return changelist

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        add_notes(request, how_to_be_told(Viewer.of(request)))
        return super().changelist_view(request, extra_context)

    def has_acknowledge_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm(ACKNOWLEDGE)

    def _may_mute(self, request: HttpRequest, row: AlertRule) -> bool:
        return self.has_acknowledge_permission(request) and is_own(visibility_of(request.user), row)

    # --- the form

    def get_fields(self, request: HttpRequest, obj: AlertRule | None = None) -> tuple[str, ...]:
        """The fields of the kind, and what is known about a stored rule."""
        kind = kind_of(obj) if obj is not None else _kind_in(request)
        if kind is None:
            return ("name", "enabled", "severity", "channels")
        return fields_of(kind)

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        form: Any = super().get_form(request, obj, change, **kwargs)
        if "seconds" not in self.get_fields(request, obj):
            form.base_fields.pop("seconds", None)  # the form declares it, so Django leaves it in
        form.visible, form.kind = visibility_of(request.user), None if obj is not None else _kind_in(request)
        return form

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Only what the user sees can be chosen. The buttons that add, change or delete a related row are left out."""
        if db_field.name == "channels":
            kwargs["widget"] = AutocompleteMany(db_field, self.admin_site)
        elif db_field.name == "schedule":
            kwargs["widget"] = Autocomplete(db_field, self.admin_site, _("All schedules"))
        field = super().formfield_for_dbfield(db_field, request, **kwargs)
        if field is None or db_field.name not in ("channels", "schedule", "group"):
            return field
        for ability in ("can_add_related", "can_change_related", "can_delete_related", "can_view_related"):
            setattr(field.widget, ability, False)
        visible = visibility_of(request.user)
        if db_field.name == "group":
            own_groups_only(field, request)
        elif visible.is_limited:
            chooser: Any = field
            chooser.queryset = visible.schedules() if db_field.name == "schedule" else visible.channels()
        return field

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Without a kind in the address, the page lists the kinds."""
        if (kind := _kind_in(request)) is not None and kind in self._kinds(request):
            title = _t("New rule: %(kind)s") % {"kind": AlertRule.Kinds(kind).label}
            about = {"title": title, "about": ABOUT[kind]}
            return super().add_view(request, form_url, {**about, **(extra_context or {})})
        if not self.has_add_permission(request):
            return super().add_view(request, form_url, extra_context)  # it refuses
        kinds = [
            {"address": f"?{KIND}={one.value}", "name": AlertRule.Kinds(one).label, "about": ABOUT[one]}
            for one in self._kinds(request)
        ]
        return self.page_response(
            request, f"{TEMPLATES}/kinds.html", title=_t("New rule: what should it tell of?"), kinds=kinds
        )

    def _kinds(self, request: HttpRequest) -> list[RuleKind]:
        """The kinds that the user may choose. A rule about the installation belongs to no group."""
        limited = visibility_of(request.user).is_limited
        return [kind for kind, facts in KINDS.items() if facts.has_scope or not limited]

    def edits_of(self, form: Any) -> list[Change]:
        """The changed fields. Of a new rule, the entry names the kind."""
        edits = super().edits_of(form)
        return edits if form.initial.get("name") else [Change(KIND, None, form.instance.kind), *edits]

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any) -> HttpResponse:
        """Adds what is known about a stored rule, and its buttons."""
        row = context.get("original")
        if row is not None:
            viewer, kind = Viewer.of(request), kind_of(row)
            reach = reaches([row], viewer.visible)[row.pk]
            context |= {
                "about": ABOUT.get(kind) if kind is not None else "",
                "tells": reach.words,
                "tells_none": reach.why_empty if reach.is_empty else "",
                "rule_error": for_reader(row.error, 500),
                "muted": self.muted(row) if is_muted(row, viewer.now) else "",
                "preview": admin_url("scheduling_alertrule_would_tell", row.pk),
                "open_alerts": viewer.list_of("alert", rule=row.pk),
            }
            if self._may_mute(request, row):
                context["mute"] = admin_url("scheduling_alertrule_mute", row.pk)
                if context["muted"]:
                    context["unmute"] = admin_url("scheduling_alertrule_unmute", row.pk)
        return super().render_change_form(request, context, *args, **kwargs)

    # --- the buttons

    def mute_view(self, request: HttpRequest, row: AlertRule) -> HttpResponse:
        """GET asks until when, and why. POST mutes the rule."""
        own = admin_url("scheduling_alertrule_change", row.pk)
        if not self._may_mute(request, row):
            self.message_user(request, _t("Only users who see all groups can mute this rule."), messages.ERROR)
            return HttpResponseRedirect(own)
        form = MuteForm(request.POST if request.method == "POST" else None)
        if form.is_valid():
            mute_rule(Actor(request.user), row, form.cleaned_data["until"], form.cleaned_data["reason"])
            said = _t("It is muted until %(until)s.") % {"until": format_minute(form.cleaned_data["until"])}
            self.message_user(request, said, messages.SUCCESS)
            return HttpResponseRedirect(own)
        lead = _t(
            "Until then, no channel is told of what “%(name)s” finds. The list of alerts shows it. What outlasts the "
            "mute is told then."
        )
        return Confirmation(
            title=_t("Mute"),
            lead=lead % {"name": visible_text(row, 120)},
            submit=_t("Mute"),
            back=own,
            form=form,
            crumbs=[(own, visible_text(row, 60))],
        ).response(request, self)

    def unmute_view(self, request: HttpRequest, row: AlertRule) -> HttpResponse:
        """POST ends the mute."""
        own = admin_url("scheduling_alertrule_change", row.pk)
        if not self._may_mute(request, row):
            self.message_user(request, _t("Only users who see all groups can mute this rule."), messages.ERROR)
        elif unmute_rule(Actor(request.user), row):
            self.message_user(request, _t("It is not muted any longer."), messages.SUCCESS)
        else:
            self.message_user(request, _t("It is not muted."), messages.WARNING)
        return HttpResponseRedirect(own)

    def would_tell_view(self, request: HttpRequest, row: AlertRule) -> HttpResponse:
        """What the rule would tell now."""
        viewer = Viewer.of(request)
        found = preview_of(row, viewer)
        reach = reaches([row], viewer.visible)[row.pk]
        lines = [
            {
                "subject": visible_text(one.subject, 200),
                "seen": visible_text(one.seen, 1_000),
                "advice": visible_text(one.advice, 500),
            }
            for one in found.found
        ]
        return self.page_response(
            request, f"{TEMPLATES}/preview.html", title=_t("What it would tell now"), original=row,
            name=visible_text(row, 120), own=admin_url("scheduling_alertrule_change", row.pk), lines=lines,
            more=found.more, problem=found.problem, severity=severity_badge(row.severity), tells=reach.words,
            tells_none=reach.why_empty if reach.is_empty else "", off=not row.enabled,
            muted=time_tag(row.muted_until) if is_muted(row, viewer.now) else "",
        )  # fmt: skip


def _kind_in(request: HttpRequest) -> RuleKind | None:
    try:
        return RuleKind(request.GET.get(KIND, ""))
    except ValueError:
        return None
