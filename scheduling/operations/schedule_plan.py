"""Plans what a schedule file would change. Nothing is changed here: see `schedule_apply`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from django.utils import timezone as clock
from django.utils.translation import gettext as _

from scheduling.core.schedule_files import Entry, is_source, nameless
from scheduling.core.targets import TARGET_KINDS, TARGETS
from scheduling.core.text import visible_text
from scheduling.handlers.permission import refusal
from scheduling.handlers.secret_params import MASK
from scheduling.handlers.targets import handler_of
from scheduling.models import Calendar, Scheduler
from scheduling.operations import schedules
from scheduling.operations.actor import Actor
from scheduling.operations.audit import VALUE_MAX_CHARS, edits_since, snapshot
from scheduling.operations.calendar_files import plan_calendars
from scheduling.operations.file_rows import FileRows
from scheduling.operations.params_diff import Change
from scheduling.operations.refused import Code, Problem, Refused
from scheduling.operations.schedule_check import fill
from scheduling.operations.schedule_entry import is_same, missing_secrets, stated, target_of, values_for, wanted
from scheduling.operations.schedule_order import circles
from scheduling.operations.schedule_prune import Gone
from scheduling.operations.schedule_stated import Stated
from scheduling.operations.schedule_steps import Act, Plan, Rules, Step, of_entry

NAMED = (*TARGETS, "user", "after")
"""The values that are rows with a name, and that may have a title, too."""
STRICT = Rules()


def plan(
    actor: Actor, entries: Sequence[Entry], source: str, rules: Rules = STRICT, calendars: Sequence[Entry] = ()
) -> Plan:
    """Compare a file with the schedules that the actor sees. Nothing is changed.

    Args:
        entries: what `core.schedule_files.read` returns.
        source: the name of the file. The schedules keep it.
        calendars: the calendars of the file.

    Raises:
        Refused: FORBIDDEN, or INVALID if the source is no such name. Problems of entries are in the plan instead.
    """
    if not is_source(source):
        said = _("The name of the file has other signs than letters, digits and . _ : / - . Give a source.")
        raise Refused.value("source", said)
    rows = FileRows(actor, source, [entry["name"] for entry in entries])
    work = _Planning(actor, source, rules, rows, {str(entry["name"]) for entry in entries})
    made, problems = plan_calendars(actor, calendars)
    work.new_calendars = {step.name for step in made if step.act is Act.MAKE}
    work.problems += problems
    for entry in sorted(entries, key=lambda entry: str(entry["name"])):
        work.add(entry)
    work.problems += circles(entries)
    gone, deletions = Gone(actor, rows, work.met), list[Step]()
    if rules.prune:
        deletions, problems = gone.deletions()
        work.problems += problems
    elif gone.keys:
        work.problems += gone.copies(work.made)
        said = _("Schedules that this file owns and does not hold any more: %(count)s. Only a prune deletes them.")
        work.notes.append(said % {"count": len(gone.keys)})
    needs_count = gone.needs_count(len(deletions))
    steps = (*deletions, *work.steps)
    return Plan(source, steps, tuple(work.problems), tuple(work.notes), needs_count, tuple(made))


class _Planning:
    """Collects the steps, problems and notes of the entries."""

    def __init__(self, actor: Actor, source: str, rules: Rules, rows: FileRows, names: Collection[str]) -> None:
        self.actor, self.source, self.rules, self.rows = actor, source, rules, rows
        self._names = names
        """The names in the file."""
        self.new_calendars: set[str] = set()
        """The names of the calendars that the file makes."""
        self.steps: list[Step] = []
        self.problems: list[Problem] = []
        self.notes: list[str] = []
        self.made: list[Stated] = []
        self.met: set[int] = set()
        """The keys of the rows that the file holds."""

    def add(self, entry: Entry) -> None:
        """Plan one entry."""
        name = str(entry["name"])
        try:
            if (step := self._step(name, entry)) is not None:
                self.steps.append(step)
        except Refused as refused:
            self.problems += of_entry(name, refused)

    def _step(self, name: str, entry: Entry) -> Step | None:
        self.met.add(self.rows.key(name))
        if said := self.rows.unusable(self.rows.key(name)):
            raise Refused.value("", said, "unusable")
        row, asked = self.rows.find(name), wanted(entry)
        if row is None:
            return self._new(asked)
        is_over = asked.values["status"] and asked.is_over(clock.now())
        if is_over:  # a one-time schedule is paused after its run, and cannot be resumed
            asked = replace(asked, has_pause=False)
        version = schedules.version(row)
        if row.name == name and row.source_file == self.source and _is_same(asked, row):
            return Step(Act.UNCHANGED, name, row.pk, version)
        self._check_owner(row, asked)
        if not asked.has_pause and not row.status and not is_over:
            self.notes.append(_("%(name)s is paused, and stays paused: the file has no “status”.") % {"name": name})
        values = values_for(asked, row, self.rules.allow_secrets)
        edits = self._edits(row, asked, values)
        return Step(Act.CHANGE if edits else Act.UNCHANGED, name, row.pk, version, values, edits)

    def _new(self, asked: Stated) -> Step | None:
        if asked.is_over(clock.now()):
            # The retention removes one-time schedules that are over. Their file can still be applied.
            self.notes.append(_("%(name)s is not made, because its date has passed.") % {"name": asked.name})
            return None
        values = values_for(asked, None, self.rules.allow_secrets)
        step = Step(Act.MAKE, asked.name, None, "", values, self._edits(Scheduler(), asked, values))
        self.made.append(asked)
        return step

    def _check_owner(self, row: Scheduler, asked: Stated) -> None:
        if refused := refusal(self.actor, row):
            raise Refused(Code.FORBIDDEN, refused)
        if self.rules.take_over:
            return
        if row.source_file not in ("", self.source):
            said = _(
                "The file “%(file)s” owns this schedule. Remove it there, take it over (--take-over), or name the "
                "same source (--source)."
            )
            raise Refused.value("", said % {"file": visible_text(row.source_file, 200)}, "owner")
        if row.name is None and asked.target != target_of(row):
            said = _("Schedule %(id)s has no name, and another target. Choose another name, or take it over.")
            raise Refused.value("", said % {"id": row.pk}, "owner")

    def _edits(self, row: Scheduler, asked: Stated, values: dict[str, Any]) -> tuple[Change, ...]:
        """Write the values into the row, which is not saved. Returns what differs.

        Raises:
            Refused: a value cannot be used.
        """
        former, code = snapshot(row, schedules.RECORDED), handler_of(row)
        missing = missing_secrets(asked, values)
        later = self._made_later(values)
        for name in later:
            setattr(row, name, None)
        try:
            fill(self.actor, row, {**values, **dict.fromkeys(later)})
        except Refused as refused:
            hint = _secrets_hint(missing) if any(one.field == "params" for one in refused.problems) else ""
            raise Refused.invalid([*refused.problems, *([Problem("params", "secret", hint)] if hint else [])]) from None
        row.source_file = self.source
        for name, other in later.items():
            setattr(row, name, other)
        awaited = former["after"]
        if awaited is not None and awaited != row.after and not self.actor.visible.shows(awaited):
            former["after"] = Scheduler(name="…")
        found = [_named(one, former, row) for one in edits_since(former, row, handler_of(row), code)]
        if found and missing:
            self.notes.append(f"{asked.name}: {_secrets_hint(missing)}")
        if code is None and row.pk is not None:  # without the code it is not known which params are secret
            found = [
                replace(one, old=one.old and MASK, new=one.new and MASK) if _is_param(one) else one for one in found
            ]
        return tuple(found)

    def _made_later(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """What the schedule names and the same file may make. It is looked at by `circles`, or when it is made."""
        found: dict[str, Any] = {}
        if (after := values.get("after")) in self._names:
            found["after"] = self.rows.find(str(after)) or Scheduler(name=after)
        if (calendar := values.get("calendar")) in self.new_calendars:
            found["calendar"] = Calendar(name=calendar)
        return found


def _is_same(asked: Stated, row: Scheduler) -> bool:
    """Whether the row surely has what the entry asks for. This asks the database nothing."""
    try:
        return is_same(asked, stated(row))
    except ValueError:  # a value that no file can hold
        return False


def _named(change: Change, former: Mapping[str, Any], row: Scheduler) -> Change:
    """The edit as the file says it: targets and users have their names, not their titles."""
    name = change.name
    return Change(name, _name(name, former[name]), _name(name, getattr(row, name))) if name in NAMED else change


def _name(field: str, value: Any) -> str | None:
    if value is None:
        return None
    if field == "after":
        return value.name or nameless(value.pk)
    name = value.get_username() if field == "user" else getattr(value, TARGET_KINDS[field].name_column)
    return visible_text(name, VALUE_MAX_CHARS)


def _is_param(change: Change) -> bool:
    return change.name.startswith("params")


def _secrets_hint(missing: Sequence[str]) -> str:
    if not missing:
        return ""
    said = _("Secrets without a value: %(names)s. A file holds no secrets: set them in the admin, or allow secrets.")
    return said % {"names": visible_text(", ".join(missing), 300)}
