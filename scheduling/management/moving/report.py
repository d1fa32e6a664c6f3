"""What an import tells: a table of what is made, each item that cannot be converted with its reason, and the counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from django.utils.translation import gettext as _

from scheduling.core.targets import TARGETS
from scheduling.core.text import one_line
from scheduling.core.zones import zone
from scheduling.management.cron.console import Console
from scheduling.management.cron.exit_codes import Exit
from scheduling.management.cron.table import Cell
from scheduling.operations.schedule_import import Fate, Item, Part
from scheduling.operations.times import format_due

_TONES = {Fate.MAKE: "good", Fate.THERE: "quiet", Fate.LISTED: "bad"}


def tell(console: Console, items: Sequence[Item], hints: Sequence[str], *, done: bool) -> int:
    """Write the report.

    Args:
        hints: sentences about the whole source.
        done: False for a dry run.

    Returns:
        The exit code: NOT_DONE if a schedule is missing.
    """
    counts = Counter(part.fate for item in items for part in item.parts if part.fate is not Fate.LISTED)
    listed = sum(item.is_listed for item in items)
    if console.as_json:
        console.json(
            "imported" if done else "import_plan", items=[_document(item) for item in items], hints=list(hints),
            made=counts[Fate.MAKE], there=counts[Fate.THERE], listed=listed,
        )  # fmt: skip
    else:
        _table(console, items)
        _listed(console, items)
        _notes(console, items, hints)
        facts = {"made": counts[Fate.MAKE], "there": counts[Fate.THERE], "listed": listed}
        said = _("Made: %(made)s. There already: %(there)s. Cannot be converted: %(listed)s.")
        would = _("To make: %(made)s. There already: %(there)s. Cannot be converted: %(listed)s. Nothing was changed.")
        console.say((said if done else would) % facts)
    return Exit.NOT_DONE if listed else Exit.DONE


def _table(console: Console, items: Sequence[Item]) -> None:
    rows = [
        (item.label, Cell(_fate(part), _TONES[part.fate]), part.name, _times(part), _next(part))
        for item in items
        for part in item.parts
        if part.fate is not Fate.LISTED
    ]
    if rows:
        console.table((_("FROM"), "", _("SCHEDULE"), _("RUNS"), _("NEXT RUNS")), rows)


def _fate(part: Part) -> str:
    return _("there already") if part.fate is Fate.THERE else _("make")


def _times(part: Part) -> str:
    """The expression or the date, and the target."""
    target = next((part.values[type_] for type_ in TARGETS if part.values.get(type_)), None)
    when = part.values["schedule"] or part.values.get("date_time")
    paused = "" if part.values.get("status", True) else _(" (paused)")
    return f"{when} {part.zone_name} → {target}{paused}"


def _next(part: Part) -> str:
    info = zone(part.zone_name)
    return ", ".join(format_due(instant, info) for instant in part.next_runs)


def _listed(console: Console, items: Sequence[Item]) -> None:
    if not any(item.is_listed for item in items):
        return
    console.say(_("Cannot be converted:"), "head")
    for item in items:
        if item.is_listed:
            console.say(f"  {item.label}: {one_line(item.text)}")
            for why in dict.fromkeys([item.why, *(part.why for part in item.parts)]):
                if why:
                    console.say(f"    {one_line(why)}", "warn")


def _notes(console: Console, items: Sequence[Item], hints: Sequence[str]) -> None:
    noted = [item for item in items if item.notes and not item.is_listed]
    if noted or hints:
        console.say(_("To look at:"), "head")
    for item in noted:
        for note in item.notes:
            console.say(f"  {item.label}: {one_line(note)}")
    for hint in hints:
        console.say(f"  {one_line(hint)}")


def _document(item: Item) -> dict[str, Any]:
    return {
        "label": item.label, "text": item.text, "why": item.why, "notes": item.notes, "listed": item.is_listed,
        "only_here": item.only_here, "only_there": item.only_there,
        "schedules": [
            {
                "fate": part.fate.value, "why": part.why, "id": part.pk, "name": part.name,
                "schedule": part.values.get("schedule", ""), "date_time": part.values.get("date_time"),
                "timezone": part.zone_name, "next_runs": list(part.next_runs),
            }
            for part in item.parts
        ],
    }  # fmt: skip
