"""Runs a worker, report or reminder once, without a schedule, in the name of an actor."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.db.models import Model
from django.utils.translation import gettext as _

from scheduling.core.deployment import Held
from scheduling.core.json_bounds import is_storable
from scheduling.core.known_sentences import in_language
from scheduling.core.targets import TARGET_KINDS
from scheduling.core.text import is_number, visible_text
from scheduling.execution.own_broker import own_broker
from scheduling.execution.run_once import run_once
from scheduling.handlers.permission import refusal
from scheduling.handlers.targets import handler_behind, target_model
from scheduling.models import SchedulerExecution
from scheduling.operations.actor import Actor
from scheduling.operations.audit import params_edits, record
from scheduling.operations.params_diff import unmask
from scheduling.operations.refused import Code, Refused
from scheduling.operations.schedule_state import RUN, check_params


def _view(type_: str) -> list[str]:
    opts = target_model(type_)._meta
    return [f"{opts.app_label}.{verb}_{opts.model_name}" for verb in ("view", "change")]


def may_see(actor: Actor, type_: str) -> bool:
    """Whether the actor may see the targets of a type."""
    return any(map(actor.has_perm, _view(type_)))


def find_target(actor: Actor, type_: str, name: str | int) -> Model:
    """The worker, report or reminder with this name, or with this id. A text of digits may be an id, too.

    Raises:
        Refused: FORBIDDEN, NOT_FOUND, or AMBIGUOUS if several reminders have this name.
    """
    actor.must(*_view(type_))
    column, rows = TARGET_KINDS[type_].name_column, target_model(type_)._default_manager
    found: list[Model] = []
    if isinstance(name, str):
        named = list(rows.filter(**{column: name})[:2]) if name and is_storable(name) else []
        found = [row for row in named if getattr(row, column) == name] or named  # MariaDB ignores case
        name = int(name) if is_number(name) else name
    if not found and isinstance(name, int):
        found = list(rows.filter(pk=name))
    if len(found) > 1:
        raise Refused(Code.AMBIGUOUS, _("Several rows of this type have this name. Give its id."))
    if not found:
        said = _("There is no %(type)s “%(name)s”.") % {"type": type_, "name": visible_text(name, 100)}
        raise Refused(Code.NOT_FOUND, said)
    return found[0]


def run_target(
    actor: Actor, type_: str, name: str | int, params: Mapping[str, Any] | None = None, key: uuid.UUID | None = None
) -> SchedulerExecution:
    """Run a target once, now.

    Args:
        params: override the target's own params, for this run only.
        key: a second call with the same key makes no new run.

    Raises:
        Refused: FORBIDDEN, NOT_FOUND, AMBIGUOUS, INVALID or HELD.
    """
    actor.must(RUN)
    target, key = find_target(actor, type_, name), key or uuid.uuid4()
    if refused := refusal(actor, target):
        raise Refused(Code.FORBIDDEN, refused)
    code, own = handler_behind(type_, target), getattr(target, "params", {})
    if code is None:
        raise Refused(Code.CONFLICT, _("No installed app registers the code of this target."))
    wanted = unmask(code, own if isinstance(own, dict) else {}, params or {})
    check_params(type_, target, wanted)
    try:
        with transaction.atomic():  # no run without its entry of the history
            made, is_new = run_once(target, own_broker(), actor.by, wanted, key)
            if is_new:
                record(actor, [target], f"run once: execution {made.pk}", params_edits(code, {}, wanted))
    except Held as held:
        raise Refused(Code.HELD, in_language(str(held))) from None
    return made
