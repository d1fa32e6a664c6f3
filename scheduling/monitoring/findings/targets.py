"""Findings about targets whose code is not registered in this process."""

from __future__ import annotations

from collections.abc import Iterator

from django.db.models import CharField, Value

from scheduling.handlers import handlers
from scheduling.handlers.targets import NAME_FIELD, target_model
from scheduling.models import Scheduler
from scheduling.monitoring.findings.finding import Finding, counted, some, warn


def unregistered() -> dict[str, dict[int, str]]:
    """The targets whose code is not registered. For each target type, a dict maps primary keys to names."""
    selects = []
    for type_, column in NAME_FIELD.items():
        known = [handler.name for handler in handlers(type_)]
        rows = target_model(type_)._default_manager.exclude(**{f"{column}__in": known}).order_by()
        selects.append(rows.values_list(Value(type_, output_field=CharField()), "pk", column))
    found: dict[str, dict[int, str]] = {type_: {} for type_ in NAME_FIELD}
    for type_, pk, name in sorted(selects[0].union(*selects[1:], all=True)):
        found[type_][pk] = name
    return found


def unused() -> Iterator[Finding]:
    """A finding about targets whose code is not registered and that no active schedule uses.

    Only the doctor reports this finding.
    """
    names: list[str] = []
    for type_, gone in unregistered().items():
        schedulers = Scheduler.objects.filter(status=True, **{f"{type_}__in": list(gone)}).order_by()
        used = set(schedulers.values_list(f"{type_}_id", flat=True).distinct())
        names += [f"{type_} {name}" for pk, name in gone.items() if pk not in used]
    if names:
        yield warn(
            "unused",
            f"{counted(len(names), 'target')} without code here, used by no active schedule: {some(names)}.",
            "Delete them in the admin if their code is not coming back.",
        )
