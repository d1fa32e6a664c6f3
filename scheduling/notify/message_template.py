"""Renders the texts of messages. Operators write these texts as templates, so rendering them must be harmless.

The engine has no loaders. A template can use only the tags and filters that are listed here, and only plain data:
texts, numbers, dates, lists and dictionaries. The number of steps and the length of the text are limited, because a
page shows a preview in the web process.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial, wraps
from typing import Any

from django.template import Context, Engine, Library, Node, TemplateSyntaxError, defaultfilters, defaulttags
from django.template.base import Template
from django.utils.functional import Promise
from django.utils.translation import gettext as _

from scheduling.core.text import visible_text

SOURCE_LENGTH = 20_000
"""The maximum length of a template in characters."""

TEXT_LENGTH = 100_000
"""The maximum length of a rendered text in characters."""

VALUE_LENGTH = 20_000
"""The maximum length of one value, and of what a filter makes of it, in characters."""

STEPS = 10_000
"""How many tags, values and turns of loops one text may have."""

TAGS = (
    "autoescape", "comment", "cycle", "filter", "firstof", "for", "if", "ifchanged", "now", "regroup", "resetcycle",
    "spaceless", "templatetag", "verbatim", "widthratio", "with",
)  # fmt: skip

FILTERS = (
    "add", "addslashes", "capfirst", "cut", "date", "default", "default_if_none", "dictsort", "dictsortreversed",
    "divisibleby", "escape", "filesizeformat", "first", "floatformat", "force_escape", "get_digit", "join", "last",
    "length", "linebreaks", "linebreaksbr", "lower", "pluralize", "slice", "slugify", "striptags", "time", "timesince",
    "timeuntil", "title", "truncatechars", "truncatewords", "upper", "urlencode", "wordcount", "yesno",
)  # fmt: skip


class MessageTemplateError(ValueError):
    """A template cannot be used, or its text is too long. The error's text is a sentence for operators."""


class _Limited(Context):
    """A context that counts the steps and the characters of one rendering."""

    steps = 0
    length = 0

    def count(self, steps: int, length: int = 0) -> None:
        self.steps += steps
        self.length += length
        if self.steps > STEPS:
            raise MessageTemplateError(_("The text has more than %(count)d steps.") % {"count": STEPS})
        if self.length > TEXT_LENGTH:
            raise MessageTemplateError(_("The text has more than %(count)d characters.") % {"count": TEXT_LENGTH})


def _limited_filter(function: Callable[..., Any]) -> Callable[..., Any]:
    """The filter with a limit for the size of its argument and its result."""

    @wraps(function)  # Django reads the attributes and the signature of the filter
    def apply(value: Any, *arguments: Any, **options: Any) -> Any:
        for argument in arguments:
            if isinstance(argument, int) and abs(argument) > VALUE_LENGTH:
                raise MessageTemplateError(_("A filter has a number that is too large."))
        result = function(value, *arguments, **options)
        if isinstance(result, str | list | tuple) and len(result) > VALUE_LENGTH:
            raise MessageTemplateError(_("A value has more than %(count)d characters.") % {"count": VALUE_LENGTH})
        return result

    return apply


def _floatformat(value: Any, digits: Any = -1) -> Any:
    """Django's filter for numbers, with at most 20 digits after the point."""
    text = str(digits)
    number = text.strip("gu-")
    if not number.isdecimal() or int(number) > 20:
        raise MessageTemplateError(_("floatformat takes at most 20 digits."))
    return defaultfilters.floatformat(value, text)


class _LimitedSequence:
    """The values of a loop. Each value counts as a step, also if the loop's body is empty."""

    def __init__(self, expression: Any) -> None:
        self.expression = expression

    def resolve(self, context: _Limited, ignore_failures: bool = False) -> Any:
        values = self.expression.resolve(context, ignore_failures)
        if values is None:
            return values
        if not hasattr(values, "__len__"):
            raise MessageTemplateError(_("A loop needs a list."))
        context.count(len(values))
        return values


def _limited_for(parser: Any, token: Any) -> Any:
    node: Any = defaulttags.do_for(parser, token)
    node.sequence = _LimitedSequence(node.sequence)
    return node


def _engine() -> Engine:
    engine = Engine(dirs=[], app_dirs=False, loaders=[], libraries={}, builtins=[], debug=False)
    library = Library()
    for name in TAGS:
        library.tags[name] = _limited_for if name == "for" else defaulttags.register.tags[name]
    for name in FILTERS:
        function = _floatformat if name == "floatformat" else defaultfilters.register.filters[name]
        library.filters[name] = _limited_filter(function)
    engine.template_builtins = [library]
    return engine


_ENGINE = _engine()


def compiled(source: str) -> Template:
    """Compile a template.

    Raises:
        MessageTemplateError: the template is too long, uses a tag or a filter that is not listed here, or is nested too
            deeply.
    """
    if len(source) > SOURCE_LENGTH:
        raise MessageTemplateError(_("The template has more than %(count)d characters.") % {"count": SOURCE_LENGTH})
    try:
        template = Template(source, engine=_ENGINE)
        nodes: list[Any] = template.nodelist.get_nodes_by_type(Node)
    except TemplateSyntaxError as error:
        said = str(error).replace(" Did you forget to register or load this tag?", "")
        raise MessageTemplateError(visible_text(said, 300)) from None
    except Exception:
        raise MessageTemplateError(_("The template cannot be read. It may be nested too deeply.")) from None
    for node in nodes:
        has_body = len(node.get_nodes_by_type(Node)) > 1
        node.render_annotated = partial(_render, node, has_body)  # the method that renders each node of a list
    return template


def _render(node: Node, has_body: bool, context: _Limited) -> str:
    text = node.render(context)
    context.count(1, 0 if has_body else len(text))  # the text of a body was counted when the body was rendered
    return text


def rendered(source: str, data: Mapping[str, Any], *, html: bool = False) -> str:
    """Render a template with plain data.

    Args:
        html: whether values are escaped for HTML.

    Raises:
        MessageTemplateError: see `compiled`; or the text is too long, or a tag or filter cannot use a value.
    """
    template = compiled(source)
    context = _Limited(plain(data), autoescape=html)
    try:
        return template.render(context)
    except MessageTemplateError:
        raise
    except RecursionError:
        raise MessageTemplateError(_("The template is nested too deeply.")) from None
    except Exception as error:
        raise MessageTemplateError(visible_text(f"{type(error).__name__}: {error}", 300)) from None


def plain(value: Any) -> Any:
    """A copy of the data in which everything is a text, a number, a date, None, a list or a dictionary."""
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    if value is None or isinstance(value, bool | int | float) or hasattr(value, "isoformat"):
        return value
    return str(value) if isinstance(value, str | Promise) else visible_text(str(value), VALUE_LENGTH)
