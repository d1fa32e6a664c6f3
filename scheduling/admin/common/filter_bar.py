"""The line of filters above a list: one menu for each filter, and the chosen filters with a link that removes each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple
from urllib.parse import urlencode

from django.contrib.admin import ListFilter
from django.contrib.admin.views.main import SEARCH_VAR, ChangeList
from django.http import HttpRequest
from django.utils.text import capfirst

from scheduling.core.text import visible_text

STOCK = ("admin/filter.html", "")
"""The template of a filter that offers a list of values. A filter with another template has a form of its own."""


class ListView(NamedTuple):
    """A link above a list to the rows that operators look for most often.

    Args:
        filters: the parameters of the URL; empty for all rows.
    """

    label: Any
    filters: Mapping[str, str]


class ShownView(NamedTuple):
    label: Any
    address: str
    is_current: bool


@dataclass
class Menu:
    """One filter of the line.

    Args:
        names: the filter's parameters in the URL.
        chosen: the chosen value in words; empty if none is chosen.
        without: the list's query string without this filter.
        choices: the values as Django offers them. Empty if the filter has a form of its own.
        spec: the filter, which renders its own form.
    """

    names: list[str]
    title: str
    chosen: str
    without: str
    choices: list[Any]
    spec: ListFilter | None = None

    @property
    def first_value(self) -> str:
        """The beginning of the chosen value, for the line itself."""
        return visible_text(self.chosen, 28)


class FilterBar:
    """What the template of a list shows above the table.

    Args:
        notes: sentences about the search or the order.
    """

    def __init__(self, changelist: ChangeList, notes: Sequence[str] = ()) -> None:
        self.changelist = changelist
        self.notes = list(notes)

    @cached_property
    def menus(self) -> list[Menu]:
        """The filters of the list, and a chip for each other condition in the URL."""
        return [*(self._menu(spec) for spec in self.changelist.filter_specs), *self._others()]

    @property
    def views(self) -> list[ShownView]:
        """The links of the list. The one whose filters are chosen, and no others, is the current one."""
        chosen = {name: values[-1] for name, values in self.changelist.get_filters_params().items()}
        views: Sequence[ListView] = getattr(self.changelist.model_admin, "list_views", ())
        return [ShownView(view.label, f"?{urlencode(view.filters)}", chosen == view.filters) for view in views]

    @property
    def count(self) -> int:
        """The number of chosen filters."""
        return sum(bool(menu.chosen) for menu in self.menus)

    @property
    def without_search(self) -> str:
        """The list's query string without the search."""
        return self._without(SEARCH_VAR)

    @property
    def cleared(self) -> str:
        """The list's query string without the filters. The search stays."""
        return self._without(*(name for menu in self.menus if menu.chosen for name in menu.names))

    @property
    def kept(self) -> list[tuple[str, str]]:
        """The parameters of the URL that a new search keeps."""
        pairs = self.changelist.filter_params.items()
        return [(name, value) for name, values in pairs if name != SEARCH_VAR for value in values]

    def _without(self, *names: str) -> str:
        # Django's argument `remove` also removes parameters whose names only begin with the name.
        return self.changelist.get_query_string(dict.fromkeys(names))

    def _menu(self, spec: ListFilter) -> Menu:
        names: list[str] = [str(name) for name in spec.expected_parameters() if name]
        choices = list(spec.choices(self.changelist)) if spec.template in STOCK else []
        active = any(name in self.changelist.filter_params for name in names)
        chosen = _words(spec, choices) if active else ""
        return Menu(
            names, capfirst(str(spec.title)), chosen, self._without(*names), choices,
            None if spec.template in STOCK else spec,
        )  # fmt: skip

    def _others(self) -> Iterator[Menu]:
        """The conditions that no menu shows, such as `attempt=3`."""
        known = {str(name) for spec in self.changelist.filter_specs for name in spec.expected_parameters()}
        known |= {str(getattr(each, "parameter_name", "")) for each in self.changelist.list_filter}
        for name, values in self.changelist.get_filters_params().items():
            if name not in known:
                text = visible_text(", ".join(str(value) for value in values), 60)
                yield Menu([name], visible_text(name, 40), text or "-", self._without(name), [])


def _words(spec: ListFilter, choices: list[Any]) -> str:
    """The chosen value in words: what the filter itself says, else the label of the choice, else the value."""
    if callable(said := getattr(spec, "chip", None)):
        return str(said()) or "-"
    selected = [str(choice["display"]) for choice in choices[1:] if choice.get("selected")]
    if selected:
        return visible_text(", ".join(selected), 60)
    values = [value for each in spec.used_parameters.values() for value in (each if isinstance(each, list) else [each])]
    return visible_text(", ".join(str(value) for value in values if value), 60) or "-"


def add_notes(request: HttpRequest, sentences: Iterable[str]) -> None:
    """Store sentences that the page shows above the list."""
    request.list_notes = [*notes_of(request), *sentences]  # type: ignore[attr-defined]


def notes_of(request: HttpRequest) -> Sequence[str]:
    """The sentences that `add_notes` has stored."""
    return getattr(request, "list_notes", ())
