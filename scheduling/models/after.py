"""The columns with which a schedule waits for another one, its predecessor (`core.after`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import QuerySet, RestrictedError
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _

from scheduling.core.after import DEFAULT_WITHIN, LONGEST_CHAIN, WITHIN_SECONDS, Late, Span, chain, is_circle
from scheduling.core.text import visible_text
from scheduling.core.words import quoted

AFTER_COLUMNS = ("after_span", "after_within_seconds", "after_late")
"""The columns that say how a schedule waits. Without `after`, they have no meaning."""

NAME_CHARS = 80

SPANS = {
    Span.DAY.value: _("its last run of the same day"),
    Span.PREVIOUS.value: _("its last run since the run before of this schedule"),
}
LATES = {
    Late.SKIP.value: _("leave the run out"),
    Late.RUN.value: _("run it all the same"),
    Late.FAIL.value: _("let it fail, without an attempt"),
}


class UseOfSchedule:
    """What Django's page "Delete" lists instead of the schedules that wait. The user may not see all of them."""

    def __init__(self, model: type[models.Model]) -> None:
        self._meta = model._meta

    def __str__(self) -> str:
        return _t("some schedules wait for it. Let them wait for nothing, or for another one, first.")


def refuse_awaited(collector: Any, field: models.Field, rows: QuerySet[Any], using: str) -> None:
    """`on_delete` of a predecessor. It may be deleted together with all schedules that wait for it.

    Raises:
        RestrictedError: another schedule waits for it. The text says what to do.
    """
    gone = {row.pk for row in collector.data.get(field.model, ())}
    waiting = list(rows.using(using).order_by("pk").values_list("pk", flat=True)[: len(gone) + 1])
    if not waiting:
        return
    if set(waiting) - gone:
        said = _t(
            "Other schedules wait for this one. Without it, they could not know when to start. Let them wait for "
            "nothing, or for another schedule, first."
        )
        raise RestrictedError(said, {UseOfSchedule(field.model)})  # type: ignore[arg-type]
    # MySQL and MariaDB check each row by itself, so what is deleted must not wait for what is deleted before it.
    collector.add_field_update(field, None, field.model._default_manager.using(using).filter(pk__in=waiting))


refuse_awaited.lazy_sub_objs = True  # type: ignore[attr-defined]  # Django would otherwise load all rows


class AfterModel(models.Model):
    """A schedule whose occurrences may wait for another schedule. `group_id` and `stay_alive` are its other columns."""

    after_id: Any  # plain SQL may have written any value
    stay_alive: Any
    group_id: Any

    after = models.ForeignKey(
        "scheduling.Scheduler",
        refuse_awaited,
        null=True,
        blank=True,
        related_name="+",
        verbose_name=_("start after"),
        help_text=_("A run waits until this schedule has succeeded. Empty: it waits for none."),
    )
    after_span = models.CharField(
        _("waits for"),
        max_length=8,
        choices=list(SPANS.items()),
        default=Span.DAY.value,
        db_default=Span.DAY.value,
        help_text=_("If the other schedule was not due in this time, there is nothing to wait for."),
    )
    after_within_seconds = models.PositiveIntegerField(
        _("waits at most (s)"),
        default=DEFAULT_WITHIN,
        db_default=DEFAULT_WITHIN,
        validators=[MinValueValidator(WITHIN_SECONDS[0]), MaxValueValidator(WITHIN_SECONDS[1])],
    )
    after_late = models.CharField(
        _("then"),
        max_length=8,
        choices=list(LATES.items()),
        default=Late.SKIP.value,
        db_default=Late.SKIP.value,
        help_text=_("What happens if it has not succeeded by then."),
    )

    class Meta:
        abstract = True

    def after_errors(self, look_up: Callable[[int], Any] | None = None) -> dict[str, ValidationError]:
        """Maps the name of each column that cannot be used to its error. Without a predecessor, no query is made.

        Args:
            look_up: see `predecessor_problem`.
        """
        found: dict[str, ValidationError] = {}
        low, high = WITHIN_SECONDS
        if type(self.after_within_seconds) is not int or not low <= self.after_within_seconds <= high:
            said = _("It must be a whole number of seconds from %(low)s to %(high)s.")
            facts = {"low": low, "high": high}
            found["after_within_seconds"] = ValidationError(said, code="range", params=facts)
        for name, known in (("after_span", SPANS), ("after_late", LATES)):
            if getattr(self, name) not in known:
                said = _("It must be one of %(known)s.")
                found[name] = ValidationError(said, code="choice", params={"known": ", ".join(known)})
        if self.after_id is not None and (problem := self.predecessor_problem(look_up)):
            found["after"] = ValidationError(problem, code="after")
        return found

    def predecessor_problem(self, look_up: Callable[[int], Any] | None = None) -> str:
        """Why the schedule cannot wait for its predecessor; empty if it can. The names of other groups are not told.

        Args:
            look_up: returns a schedule with `after_id` and `stay_alive`, or None; by default, a query does.
        """
        look_up = look_up or self._look_up

        def next_of(pk: int) -> int | None:
            row = look_up(pk)
            return row.after_id if row is not None else None

        other = look_up(self.after_id) if type(self.after_id) is int else None
        if other is None:
            said = _t("It would wait for schedule %(id)s, which does not exist.")
            return said % {"id": visible_text(self.after_id, 20)}
        ids: list[int] = chain(self.pk or 0, other.pk, next_of)
        if is_circle(ids):
            names = " → ".join(self._names(ids))
            return _t("The schedules would wait for each other in a circle: %(names)s.") % {"names": names}
        if len(ids) > LONGEST_CHAIN:
            said = _t("More than %(count)s schedules would wait for each other in a row.")
            return said % {"count": LONGEST_CHAIN}
        if self.stay_alive:
            return _t("A service never ends, so it waits for no other schedule.")
        if other.stay_alive:
            return _t("It would wait for a service, which never ends.")
        return ""

    def _look_up(self, pk: int) -> Any:
        rows: Any = type(self)._default_manager
        return rows.only("after_id", "stay_alive").filter(pk=pk).first()

    def awaited_problem(self) -> str:
        """Why the schedule cannot be a service: others wait for it. Empty if none does."""
        if not self.pk or not type(self)._default_manager.filter(after=self.pk).exists():
            return ""
        return _t("Other schedules wait for this one. A service never ends, so they would never start.")

    def _names(self, ids: list[int]) -> list[str]:
        rows = type(self)._default_manager.in_bulk([pk for pk in ids if pk])
        own = {self.pk or 0: self}
        return [
            predecessor_words(row, self.group_id) if (row := own.get(pk) or rows.get(pk)) is not None else str(pk)
            for pk in ids
        ]


def is_named_to(row: Any, group: int | None) -> bool:
    """Whether all who see the rows of a group also see this schedule; without a group, all users (`visibility`)."""
    return row.group_id is None or row.group_id == group


def predecessor_words(row: Any, group: int | None) -> str:
    """A schedule as a part of a sentence that the members of a group read; without a group, all users."""
    if not is_named_to(row, group):
        return _t("a schedule of another group")
    facts = {"name": visible_text(row, NAME_CHARS), "id": row.pk}
    return _t("“%(name)s” (schedule %(id)s)") % facts if row.pk else quoted(facts["name"])
