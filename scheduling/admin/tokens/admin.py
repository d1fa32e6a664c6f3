"""The pages of API tokens: users make their own tokens and revoke them. A secret is shown once, when it is made."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.contrib.auth import get_user_model
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils import timezone as clock
from django.utils.decorators import method_decorator
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _
from django.views.decorators.debug import sensitive_variables

from scheduling.admin.common.confirm import Confirmation
from scheduling.admin.common.pages import Page
from scheduling.admin.common.read_only import ReadOnly
from scheduling.admin.common.safe_text import column
from scheduling.admin.common.secret_page import secret_page
from scheduling.admin.tokens import words
from scheduling.admin.tokens.form import CHOSEN, TokenForm
from scheduling.admin.ui.links import admin_url
from scheduling.admin.ui.times import EMPTY, time_with_relative
from scheduling.core.text import visible_text
from scheduling.models import ApiToken
from scheduling.operations.audit import message, record
from scheduling.operations.token_history import making_edits
from scheduling.operations.tokens import REVOKE_ANY, TokenRefused, make_token, revoke, tokens_seen_by


@admin.register(ApiToken)
class ApiTokenAdmin(ReadOnly):
    """Users see and revoke their own tokens. With the permission `REVOKE_ANY`, they see and revoke all tokens."""

    form = TokenForm
    change_form_template = "admin/scheduling/apitoken/change_form.html"
    list_display = (
        column(ApiToken, "name"), "owner", column(ApiToken, "prefix"), "access", "used", "expires", "state",
    )  # fmt: skip
    list_select_related = ("user",)
    search_fields = ("name", "prefix", f"user__{get_user_model().USERNAME_FIELD}")
    actions = None
    no_rows = _("A token lets a program use the HTTP API in your name. Only its hash is stored.")
    pages: tuple[Page, ...] = (Page("revoke", "view"),)

    def get_queryset(self, request: HttpRequest) -> QuerySet[ApiToken]:
        return tokens_seen_by(request.user).order_by(*self.ordering)

    def get_fields(self, request: HttpRequest, obj: ApiToken | None = None) -> tuple[str, ...]:
        if obj is None:
            return ("name", "expires_at", "read_only", CHOSEN)
        facts = ("shown_name", "owner", "shown_prefix", "access", "permissions_shown", "created", "used", "expires")
        return (*facts, "state", *(("revoked",) if obj.revoked_at is not None else ()))

    def get_readonly_fields(self, request: HttpRequest, obj: ApiToken | None = None) -> tuple[str, ...]:
        return () if obj is None else self.get_fields(request, obj)

    def _get_obj_does_not_exist_redirect(self, request: HttpRequest, opts: Any, object_id: str) -> HttpResponseRedirect:
        """The tokens of others do not exist for a user. Users without permissions get the same answer as elsewhere."""
        if not self.has_view_or_change_permission(request):
            raise PermissionDenied
        return super()._get_obj_does_not_exist_redirect(request, opts, object_id)

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        form: Any = super().get_form(request, obj, change, **kwargs)
        form.user = request.user
        if obj is not None:
            form.base_fields.pop(CHOSEN, None)
        return form

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        """Refuses to filter the list by the hash. A user could find it out, one character at a time."""
        return "digest" not in lookup.split("__") and super().lookup_allowed(lookup, value, request)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.has_perm("scheduling.add_apitoken"))

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_view_permission(request, obj) or request.user.has_perm(REVOKE_ANY)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Tokens are revoked, and the cleanup deletes them. Who deletes a user deletes the user's tokens, too."""
        match = request.resolver_match
        ours = match is None or (match.url_name or "").startswith("scheduling_apitoken_")
        return not ours and request.user.has_perm(_delete_user())

    @method_decorator(sensitive_variables())
    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Django's reports of errors leave out all variables of functions called from here."""
        try:
            return super().changeform_view(request, *args, **kwargs)
        except TokenRefused as refused:  # another request was faster than this one, after the form was checked
            self.message_user(request, str(refused), messages.ERROR)
            return HttpResponseRedirect(admin_url("scheduling_apitoken_add"))

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        values = form.cleaned_data
        made, obj.new_secret = make_token(
            request.user, values["name"], read_only=values["read_only"], permissions=values[CHOSEN] or None,
            expires_at=values["expires_at"],
        )  # fmt: skip
        for field in made._meta.concrete_fields:
            setattr(obj, field.attname, getattr(made, field.attname))
        obj._state.adding = False

    def construct_change_message(self, request: HttpRequest, form: Any, formsets: Any, add: bool = False) -> Any:
        return message("", making_edits(form.instance))

    def response_add(self, request: HttpRequest, obj: Any, post_url_continue: Any = None) -> HttpResponse:
        """The page with the secret."""
        facts = [
            (_t("Name"), visible_text(obj)),
            (_t("Access"), words.access(obj)),
            (_t("Expires"), words.expires(obj, clock.now())),
        ]
        return secret_page(
            self, request, obj.new_secret, title=_t("New API token"), facts=facts,
            use=_t("A program sends it with each request, in the header “Authorization: Bearer”."),
            back=admin_url("scheduling_apitoken_changelist") if self.has_view_permission(request) else "",
        )  # fmt: skip

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any) -> HttpResponse:
        """Adds the button that revokes. A new token is saved by one button, because its secret is shown once."""
        row = context.get("original")
        if row is not None and row.revoked_at is None:
            context["revoke"] = admin_url("scheduling_apitoken_revoke", row.pk)
        context |= {"show_save_and_continue": False, "show_save_and_add_another": False}
        return super().render_change_form(request, context, *args, **kwargs)

    def revoke_view(self, request: HttpRequest, row: ApiToken) -> HttpResponse:
        """GET asks; POST revokes."""
        now, name = clock.now(), visible_text(row)
        if request.method != "POST":
            return self._confirmation(row, name).response(request, self)
        if revoke(row, request.user.get_username(), now):
            record(request, [row], "revoke")
            self.message_user(request, _t("The token “%(name)s” is revoked.") % {"name": name}, messages.SUCCESS)
        else:
            self.message_user(request, _t("It was revoked already."), messages.WARNING)
        return HttpResponseRedirect(admin_url("scheduling_apitoken_changelist"))

    def _confirmation(self, row: ApiToken, name: str) -> Confirmation:
        page = admin_url("scheduling_apitoken_change", row.pk)
        return Confirmation(
            title=_t("Revoke"), submit=_t("Revoke the token"), back=page, danger=True, crumbs=[(page, name)],
            lead=_t("Programs that use the token “%(name)s” are refused at once. This cannot be undone.")
            % {"name": name},
            facts=[
                (_t("Owner"), self.owner(row)), (_t("Prefix"), visible_text(row.prefix, 16)),
                (_t("Access"), words.access(row)), (_t("Last used"), self.used(row)),
            ],
            blocked=row.revoked_at is not None,
            warnings=[_t("It was revoked already.")] if row.revoked_at is not None else [],
        )  # fmt: skip

    @admin.display(description=_("Name"))
    def shown_name(self, row: ApiToken) -> str:
        return visible_text(row)

    @admin.display(description=_("Prefix"))
    def shown_prefix(self, row: ApiToken) -> str:
        return visible_text(row.prefix, 16)

    @admin.display(description=_("Owner"))
    def owner(self, row: ApiToken) -> str:
        return visible_text(row.user.get_username(), 150)

    @admin.display(description=_("Access"))
    def access(self, row: ApiToken) -> str:
        return words.access(row)

    @admin.display(description=_("Permissions"))
    def permissions_shown(self, row: ApiToken) -> SafeString | str:
        return words.permissions(row)

    @admin.display(description=_("Created"), ordering="created_at")
    def created(self, row: ApiToken) -> str:
        return words.created(row)

    @admin.display(description=_("Last used"), ordering="last_used_at")
    def used(self, row: ApiToken) -> str:
        return words.used(row)

    @admin.display(description=_("Expires"), ordering="expires_at")
    def expires(self, row: ApiToken) -> str:
        return words.expires(row, clock.now())

    @admin.display(description=_("State"))
    def state(self, row: ApiToken) -> SafeString:
        return words.state_badge(row, clock.now())

    @admin.display(description=_("Revoked"))
    def revoked(self, row: ApiToken) -> str:
        said = _t("%(when)s by %(user)s")
        by = visible_text(row.revoked_by, 150) or EMPTY
        return said % {"when": row.revoked_at and time_with_relative(row.revoked_at), "user": by}


def _delete_user() -> str:
    """The permission to delete users."""
    opts = get_user_model()._meta
    return f"{opts.app_label}.delete_{opts.model_name}"
