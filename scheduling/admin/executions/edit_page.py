"""The pages that change an execution's parameters before a rerun or republish: a form, and then a confirmation page."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.db.models import Model
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _

from scheduling.admin.common.confirm import Confirmation
from scheduling.admin.common.pages import Pages
from scheduling.admin.params.form import MEDIA as PARAMS_MEDIA
from scheduling.admin.params.form import ParamsForm
from scheduling.admin.params.json_field import json_block
from scheduling.admin.params.model import params_table
from scheduling.admin.ui.media import MEDIA
from scheduling.handlers import Handler
from scheduling.handlers.secret_params import masked
from scheduling.handlers.targets import handler_of_execution
from scheduling.models import SchedulerExecution
from scheduling.operations import params_diff

TEMPLATE = "admin/scheduling/failedexecution/edit.html"


class RunParamsForm(forms.Form):
    """The form for the parameters of the next run.

    Args:
        row: the execution whose parameters the user edits.
        handler: the handler that will run; None if the handler is not registered in this process.
        type_: the type of the target.
        target: the target that will run; None if the target is deleted.
    """

    def __init__(
        self,
        row: SchedulerExecution,
        handler: Handler | None,
        type_: str,
        target: Model | None,
        data: Any = None,
        **kwargs: Any,
    ) -> None:
        self.row, self.handler, self.type, self.target = row, handler, type_, target
        self.inherited = getattr(target, "params", {})
        # Plain SQL may have written params that are not a JSON object.
        self.old = row.params if isinstance(row.params, dict) else {}
        self.former = handler_of_execution(row)
        self.params = ParamsForm(handler, self.old, inherited=self.inherited, stored_for=self.former, data=data)
        super().__init__(data, **kwargs)

    def clean(self) -> dict[str, Any]:
        """Restores the secrets that were not changed, and checks the parameters against the handler's params model."""
        data = super().clean() or self.cleaned_data
        if not self.params.is_valid():
            raise ValidationError(_("Please correct the error below."), code="params")
        return {**data, "params": self.params.params}


class EditPage(Pages):
    """GET shows the form. The form's POST shows the confirmation page. The confirmation's POST applies the edit."""

    unchanged: Any
    """The warning that the confirmation page shows if no parameter was changed."""

    def edit_question(self, request: HttpRequest, form: Any) -> Confirmation:
        """The texts of the confirmation page, without the list of changes.

        The page with the form shows the same title, facts and warnings.
        """
        raise NotImplementedError

    def apply_edit(self, request: HttpRequest, form: Any) -> str:
        """Applies the edit, tells the operator, and returns the URL of the page to show next."""
        raise NotImplementedError

    def edit_response(self, request: HttpRequest, form: RunParamsForm) -> HttpResponse:
        if not form.is_valid():
            return self._edit_form(request, form)
        if request.POST.get("post") != "yes":
            return self._ask_edit(request, form)
        return HttpResponseRedirect(self.apply_edit(request, form))

    def _edit_form(self, request: HttpRequest, form: RunParamsForm) -> TemplateResponse:
        handler, question = form.handler, self.edit_question(request, form)
        context = {
            "media": MEDIA + PARAMS_MEDIA,
            "title": question.title,
            "c": question,
            "has_view_permission": True,
            "form": form,
            "table": params_table(handler.params) if handler is not None and not form.params.inputs else "",
            "defaults": json_block(masked(handler, form.inherited)) if form.inherited else "",
        }
        return self.page_response(request, TEMPLATE, **context)

    def _ask_edit(self, request: HttpRequest, form: RunParamsForm) -> TemplateResponse:
        question = self.edit_question(request, form)
        found = params_diff.changes(form.handler, form.old, form.cleaned_data["params"], other=form.former)
        return replace(
            question,
            back=request.path,
            changes=found,
            warnings=question.warnings if found else [*question.warnings, self.unchanged],
            hidden=[("post", "yes"), *question.hidden, ("params", json.dumps(form.params.written))],
        ).response(request, self)
