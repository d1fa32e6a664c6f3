"""Reads and writes the plain part of YAML: mappings, lists, texts, numbers, true, false and null.

Anchors, aliases, tags and duplicate keys are refused, so a short document cannot become a large value, and a document
makes no objects. Only true and false are truth values, as in YAML 1.2: `on` and `yes` are texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from scheduling.core.words import gettext as _

MAX_DEPTH = 40
"""Mappings and lists inside each other."""

_WHOLE = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_FRACTION = re.compile(r"[-+]?(0|[1-9][0-9]*)\.[0-9]*([eE][-+][0-9]+)?")
_WORDS = {"": None, "~": None, "null": None, "true": True, "false": False}
_LONGEST_NUMBER = 40


class YamlInvalid(ValueError):
    """The text cannot be read.

    Args:
        text: a sentence, with the line if it is known.
    """


class YamlMissing(ImportError):
    """The package PyYAML is not installed."""

    def __init__(self) -> None:
        super().__init__(_("YAML needs the package PyYAML: pip install 'cronsite[yaml]', or use JSON."))


def loads(text: str) -> Any:
    """The value of a document.

    Raises:
        YamlInvalid: the text is not such a document.
        YamlMissing: PyYAML is not installed.
    """
    yaml = _yaml()
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return _Builder(yaml).value(yaml.parse(text, Loader=loader))
    except yaml.YAMLError as error:
        mark, said = getattr(error, "problem_mark", None), getattr(error, "problem", None)
        if "alias" in str(getattr(error, "context", "")):  # an expression such as * * * * * without quotation marks
            said = _no_aliases()
        raise YamlInvalid(_sentence(mark, said or _("the text is not YAML"))) from None


def dumps(value: Any, ascii_only: bool) -> str:
    """The document of a JSON value. The keys keep their order.

    Args:
        ascii_only: write each other character as a code.

    Raises:
        YamlMissing: PyYAML is not installed.
    """
    return str(_yaml().safe_dump(value, sort_keys=False, allow_unicode=not ascii_only, width=100))


def _yaml() -> Any:
    try:
        import yaml
    except ImportError:
        raise YamlMissing from None
    return yaml


def _sentence(mark: Any, said: str) -> str:
    if mark is None:
        return f"{said[:1].upper()}{said[1:]}."
    return _("Line {line}: {fault}.").format(line=mark.line + 1, fault=said)


def _no_aliases() -> str:
    return _("aliases and anchors are not allowed. Put a text that begins with * or & in quotation marks")


class _Builder:
    """Makes a value from the events of the parser. It is not recursive, and it stops at the first forbidden event."""

    def __init__(self, yaml: Any) -> None:
        self.yaml = yaml
        self.open: list[Any] = []
        self.keys: list[Any] = []
        """For each open mapping the key whose value comes next, or `_NO_KEY`."""
        self.found: Any = _NO_KEY

    def value(self, events: Iterator[Any]) -> Any:
        """Read all events."""
        yaml = self.yaml
        for event in events:
            self._refuse(event)
            if isinstance(event, yaml.ScalarEvent):
                plain = event.implicit[0] and event.style in (None, "")
                self._add(event, _scalar(event.value) if plain else event.value)
            elif isinstance(event, yaml.CollectionStartEvent):
                made: Any = {} if isinstance(event, yaml.MappingStartEvent) else []
                self._add(event, made)
                self.open.append(made)
                self.keys.append(_NO_KEY)
                if len(self.open) > MAX_DEPTH:
                    said = _("values are nested deeper than {levels} levels").format(levels=MAX_DEPTH)
                    raise YamlInvalid(_sentence(event.start_mark, said))
            elif isinstance(event, yaml.CollectionEndEvent):
                self.open.pop()
                self.keys.pop()
        return None if self.found is _NO_KEY else self.found

    def _refuse(self, event: Any) -> None:
        said = ""
        if isinstance(event, self.yaml.AliasEvent) or getattr(event, "anchor", None):
            said = _no_aliases()
        elif getattr(event, "tag", None):
            said = _("tags are not allowed")
        elif isinstance(event, self.yaml.DocumentStartEvent) and self.found is not _NO_KEY:
            said = _("the file has a second document")
        if said:
            raise YamlInvalid(_sentence(event.start_mark, said))

    def _add(self, event: Any, value: Any) -> None:
        if not self.open:
            self.found = value
        elif isinstance(self.open[-1], list):
            self.open[-1].append(value)
        elif self.keys[-1] is not _NO_KEY:
            self.open[-1][self.keys[-1]] = value
            self.keys[-1] = _NO_KEY
        elif not isinstance(value, str):
            raise YamlInvalid(_sentence(event.start_mark, _("a key is not a text. Put it in quotation marks")))
        elif value in self.open[-1]:
            said = _("the key {key} stands there twice").format(key=repr(value[:80]))
            raise YamlInvalid(_sentence(event.start_mark, said))
        else:
            self.keys[-1] = value


_NO_KEY = object()


def _scalar(text: str) -> Any:
    """The value of a text without quotation marks."""
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if len(text) <= _LONGEST_NUMBER and _WHOLE.fullmatch(text):
        return int(text)
    if len(text) <= _LONGEST_NUMBER and _FRACTION.fullmatch(text):
        return float(text)
    return text
