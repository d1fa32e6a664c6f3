"""What the form of a schedule offers to a user: targets whose code the user may run."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from scheduling.handlers.permission import refused_targets


def allowed_targets_only(field: Any, request: HttpRequest, type_: str) -> None:
    """Offer only targets whose code asks for no permission, or for one that the user has.

    The form refuses any other target that a request names.
    """
    refused = refused_targets(request.user, type_)
    if refused is not None:
        field.queryset = field.queryset.exclude(refused) if refused else field.queryset.none()
        field.error_messages["invalid_choice"] = _(
            "You may not choose this target: it is deleted, or its code asks for a permission that you lack."
        )
