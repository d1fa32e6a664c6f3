"""The search in the lists of executions and of failures. It finds what stands on the screen, and knows qualifiers.

A qualifier of a filter, such as `state:failed`, becomes that filter. The other qualifiers narrow the search itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from operator import and_
from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.utils.translation import gettext as _

from scheduling.admin.common.filter_bar import add_notes
from scheduling.admin.common.filters import SchedulerFilter
from scheduling.admin.common.pages import Pages
from scheduling.admin.ui.text import is_number, searched
from scheduling.core.search_terms import Qualifier, Search, quoted, read_search
from scheduling.core.text import visible_text
from scheduling.models.visibility import Visibility, visibility_of
from scheduling.operations import names
from scheduling.operations.names import schedules_named, targets_named
from scheduling.operations.param_search import path_of, with_param
from scheduling.operations.search_conditions import (
    KEY_PREFIXES,
    errors_with,
    is_fingerprint,
    with_fingerprint,
    with_id,
    with_key,
)

QUERY = "q"

Find = Callable[[HttpRequest, str], Q]


def _of_targets(request: HttpRequest, text: str) -> Q:
    named = targets_named(text)
    if named.cut:
        said = _("Many targets have “%(text)s” in their name. Only the newest %(count)s of each type were searched.")
        add_notes(request, [said % {"text": visible_text(text, 60), "count": names.MOST}])
    return named.found


NARROW = ("id", "schedule")
"""Qualifiers whose condition an index answers. They apply before the limit of a search."""

WIDE: Mapping[str, Find] = {
    "error": lambda _request, text: errors_with(text),
    "target": _of_targets,
    "key": lambda _request, text: with_key(text),
    "param": lambda _request, text: with_param(text),
}
"""Qualifiers whose condition reads the text of each row. They apply to the rows within the limit only."""


class RunSearch(Pages):
    """Adds the search to a list of executions. A subclass bounds the search in `bounded`."""

    numbers_are_ids = True
    """Whether a search for a number finds the execution with this id only."""

    def bounded(self, request: HttpRequest, queryset: QuerySet) -> tuple[Q, str]:
        """The condition on the rows that a search may read, and a sentence about the limit.

        Both are empty if all rows of the queryset may be read.
        """
        raise NotImplementedError

    def get_search_results(self, request: HttpRequest, queryset: QuerySet, search_term: str) -> tuple[QuerySet, bool]:
        """The rows that match the words and all qualifiers. No row, if a qualifier cannot be used."""
        search = read_search(searched(search_term))
        if problems := list(self._problems(request, search)):
            add_notes(request, problems)
            return queryset.none(), False
        for part in search.qualifiers:
            if part.name in NARROW:
                found = with_id(part.value) if part.name == "id" else _of_schedules(request, part.value)
                queryset = queryset.filter(found)
        # MariaDB finds nothing if the same condition on JSON stands twice in one statement.
        parts = dict.fromkeys((part.name, part.value) for part in search.qualifiers if part.name in WIDE)
        wide = [WIDE[name](request, value) for name, value in parts]
        number = is_number(search.words)
        if number and self.numbers_are_ids and not wide:
            return queryset.filter(pk=int(search.words)), False
        if search.words:
            wide.append(errors_with(search.words) if number else _words(request, search.words))
        if not wide:
            return queryset, False
        limit, said = self.bounded(request, queryset)
        add_notes(request, [said] if said else [])
        matching = reduce(and_, wide) & limit
        return queryset.filter(matching | Q(pk=int(search.words)) if number else matching), False

    def _problems(self, request: HttpRequest, search: Search) -> Iterable[str]:
        """What is wrong with the qualifiers, as sentences."""
        filters = self._filters(request)
        for part in search.qualifiers:
            text = {"part": visible_text(part.written, 80), "name": part.name}
            if part.name == "id" and not is_number(part.value):
                yield _("“%(part)s”: an id is a whole number.") % text
            elif part.name == "param" and path_of(part.value) is None:
                yield _("“%(part)s”: write a name and a value, such as param:region=eu.") % text
            elif part.name in NARROW or part.name in WIDE:
                continue
            elif part.name in filters and part.value.lower() in filters[part.name][1]:
                yield _("“%(part)s”: a search can have one %(name)s only.") % text
            elif part.name in filters:
                values = ", ".join(dict.fromkeys(quoted(value) for value in filters[part.name][1].values()))
                yield _("“%(part)s”: %(name)s is one of these: %(values)s.") % {**text, "values": values}
            else:
                known = ", ".join(f"{name}:" for name in (*NARROW, *WIDE, *filters))
                said = _("“%(part)s”: no filter has this name. There are %(known)s. To search for the text, quote it.")
                yield said % {**text, "known": known}

    # --- qualifiers of filters

    def with_filters(self, request: HttpRequest) -> HttpResponse | None:
        """A redirect to the list with the filters that the search names; None if it names none."""
        if request.method != "GET" or ":" not in request.GET.get(QUERY, ""):
            return None
        search = read_search(searched(request.GET[QUERY]))
        if not search.qualifiers:
            return None
        query, left = request.GET.copy(), list[Qualifier]()
        filters, visible = self._filters(request), visibility_of(request.user)
        named = [part.name for part in search.qualifiers if part.name in filters]
        if len(named) > len(set(named)):
            return None  # the page says that a filter has one value
        for part in search.qualifiers:
            if not _becomes_filter(part, filters, query, visible):
                left.append(part)
        if len(left) == len(search.qualifiers):
            return None
        words = f'"{search.words}"' if read_search(search.words).qualifiers else search.words
        text = " ".join([words, *(part.written for part in left)]).strip()
        query.pop("p", None)
        if text:
            query[QUERY] = text
        else:
            del query[QUERY]
        return HttpResponseRedirect(f"{request.path}?{query.urlencode()}" if query else request.path)

    def _filters(self, request: HttpRequest) -> dict[str, tuple[str, dict[str, str]]]:
        """The filters that have a qualifier: the parameter of the URL, and the stored value of each word."""
        found: dict[str, tuple[str, dict[str, str]]] = {}
        for each in self.get_list_filter(request):
            if isinstance(each, tuple):
                field = self.model._meta.get_field(str(each[0]))
                name, parameter, choices = field.name, field.name, getattr(field, "flatchoices", ())
            elif isinstance(each, type) and issubclass(each, admin.SimpleListFilter):
                parameter = str(each.parameter_name)
                name = getattr(each, "qualifier", "") or (parameter if getattr(each, "values", ()) else "")
                choices = each(request, {}, self.model, self).lookup_choices if name else ()
            else:
                continue
            if name and choices:
                found[name] = parameter, _by_word(choices)
        return found


def _by_word(choices: Iterable[tuple[Any, Any]]) -> dict[str, str]:
    """The stored value for each stored value and each label, both in lower case."""
    pairs = [(str(value), str(label)) for value, label in choices]
    return {label.lower(): value for value, label in pairs} | {value.lower(): value for value, _label in pairs}


def _of_schedules(request: HttpRequest, text: str) -> Q:
    if is_number(text):
        return Q(scheduler_id=int(text))
    keys = schedules_named(text, visibility_of(request.user))
    if len(keys) == names.MOST:
        said = _("Many schedules have “%(text)s” in their name. Only the newest %(count)s of them were searched.")
        add_notes(request, [said % {"text": visible_text(text, 60), "count": names.MOST}])
    return Q(scheduler_id__in=keys)


def _words(request: HttpRequest, text: str) -> Q:
    if is_fingerprint(text):
        return with_fingerprint(text)
    if text.startswith(KEY_PREFIXES):
        return with_key(text)
    return errors_with(text) | _of_targets(request, text) | _of_schedules(request, text)


def _becomes_filter(
    part: Qualifier, filters: dict[str, tuple[str, dict[str, str]]], query: QueryDict, visible: Visibility
) -> bool:
    """Moves the qualifier into the query string. False if it has to stay in the search."""
    parameter, value = str(SchedulerFilter.parameter_name), None
    if part.name == "schedule":
        named = [part.value] if is_number(part.value) else schedules_named(part.value, visible)
        value = str(named[0]) if len(named) == 1 else None
    elif part.name in filters:
        parameter, words = filters[part.name]
        value = words.get(part.value.lower())
    if value is None:
        return False
    query[parameter] = value
    return True
