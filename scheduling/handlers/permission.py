"""The permission that a handler asks for. A user who lacks it sees the handler's rows but cannot change or run them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from django.apps import apps
from django.db.models import Q
from django.utils.translation import gettext as _

from scheduling.core.pauses import Scope
from scheduling.core.targets import TARGET_KINDS
from scheduling.handlers.registry import Handler, handlers
from scheduling.handlers.targets import handler_behind, handler_named, handler_of, handler_of_execution
from scheduling.models import Backfill, Breaker, LoweredLimit, Pause, Scheduler, SchedulerExecution

SHAPE = re.compile(r"[A-Za-z_]\w*\.\w+")
"""`app_label.codename`"""


def problems() -> Iterator[tuple[str, bool]]:
    """What is wrong with the permissions of the registered handlers: a sentence, and whether it is the shape."""
    for handler in handlers():
        said = f"The permission {handler.permission!r} of {handler.type} {handler.name!r}"
        if not handler.permission:
            continue
        if not isinstance(handler.permission, str) or not SHAPE.fullmatch(handler.permission):
            yield f"{said} must have the form 'app_label.codename'.", True
        elif handler.permission not in _known():
            yield f"{said} is not a permission of an installed model.", False


def _known() -> set[str]:
    """The permissions that `migrate` makes. The table of permissions is not read, because it may not exist yet."""
    found = set()
    for model in apps.get_models():
        opts = model._meta
        names = [f"{verb}_{opts.model_name}" for verb in opts.default_permissions]
        found |= {f"{opts.app_label}.{name}" for name in (*names, *(name for name, _words in opts.permissions))}
    return found


def lacks(user: Any, handler: Handler | None) -> bool:
    """Whether the handler asks for a permission that the user lacks."""
    return handler is not None and bool(handler.permission) and not user.has_perm(handler.permission)


def lacked(user: Any, row: Any) -> Handler | None:
    """The handler of a schedule, execution, target, backfill, pause or breaker whose permission the user lacks; None if
    there is no such handler.

    A rerun of an execution runs the present target of its schedule, which may be another one. So both handlers count.
    """
    if isinstance(row, Scheduler):
        found = [handler_of(row)]
    elif isinstance(row, SchedulerExecution):
        found = [handler_of_execution(row), *([handler_of(row.scheduler)] if row.scheduler is not None else [])]
    elif isinstance(row, Backfill):
        found = [handler_of(row.scheduler)] if row.scheduler is not None else []
    elif isinstance(row, Pause):
        found = [handler_named(row.type, row.name)] if row.scope == Scope.HANDLER else []
    elif isinstance(row, Breaker | LoweredLimit):
        found = [handler_named(row.type, row.name)]
    else:
        found = [handler_behind(str(row._meta.model_name), row)] if row is not None else []
    return next((handler for handler in found if lacks(user, handler)), None)


def refusal(user: Any, row: Any) -> str:
    """Why the user may not change or run the row; empty if the user may."""
    handler = lacked(user, row)
    if handler is None:
        return ""
    said = _("You may look at it, but not change or run it: its code asks for the permission “%(permission)s”.")
    return said % {"permission": handler.permission}


def lacks_all(user: Any, targets: Iterable[tuple[str, str]]) -> bool:
    """Whether the code of all these targets asks for a permission that the user lacks.

    Args:
        targets: the type and the name of each target, as executions hold them.
    """
    refused = [lacks(user, handler_named(type_, _handler_name(type_, name))) for type_, name in targets]
    return bool(refused) and all(refused)


def _handler_name(type_: str, name: str) -> str:
    kind = TARGET_KINDS.get(type_)
    return kind.handler if kind is not None and kind.handler else name


def refused_executions(user: Any) -> Q | None:
    """The condition on executions whose code asks for a permission that the user lacks; None if there is no such code.

    The schedule of an execution is not looked at: an action on many executions runs them again, not their schedules.
    """
    found: Q | None = None
    for handler in handlers():
        if lacks(user, handler):
            shared = TARGET_KINDS[handler.type].handler
            own = Q(type=handler.type) if shared else Q(type=handler.type, target_name=handler.name)
            found = own if found is None else found | own
    return found


def refused_schedules(user: Any) -> Q | None:
    """The condition on schedules whose code asks for a permission that the user lacks; None without such code."""
    found: Q | None = None
    for handler in handlers():
        if lacks(user, handler):
            kind = TARGET_KINDS[handler.type]
            shared = Q(**{f"{handler.type}__isnull": False})
            own = shared if kind.handler else Q(**{f"{handler.type}__{kind.name_column}": handler.name})
            found = own if found is None else found | own
    return found


def refused_targets(user: Any, type_: str) -> Q | None:
    """The condition on targets whose code asks for a permission that the user lacks; None without such code."""
    kind = TARGET_KINDS[type_]
    names = [handler.name for handler in handlers(type_) if lacks(user, handler)]
    if not names:
        return None
    return Q() if kind.handler else Q(**{f"{kind.name_column}__in": names})
