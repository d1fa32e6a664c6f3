"""The conditions of a search of executions by their own columns."""

from __future__ import annotations

from django.db.models import Q

from scheduling.core.text import is_number

KEY_PREFIXES = ("cron-", "date-", "manual-")


def error_class_is(text: str) -> Q:
    """The condition on executions whose error has this class, by its whole name or by its last part."""
    found = Q(error_class=text)
    return found if "." in text else found | Q(error_class__endswith=f".{text}")


def errors_with(text: str) -> Q:
    """The condition on executions whose error contains the text.

    `KeyError: name`, as pages show it, also finds the message `name` of the class `KeyError`.
    """
    found = Q(error_class__icontains=text) | Q(error_message__icontains=text)
    class_, colon, message = text.partition(": ")
    if colon and class_.strip() and message.strip():
        found |= Q(error_class__icontains=class_.strip(), error_message__icontains=message.strip())
    return found | with_fingerprint(text)


def with_fingerprint(text: str) -> Q:
    """The executions whose error has this fingerprint."""
    return Q(fingerprint=text.lower()) if is_fingerprint(text) else Q(pk__in=())


def is_fingerprint(text: str) -> bool:
    """Whether the text may be a fingerprint."""
    return len(text) == 40 and set(text.lower()) <= set("0123456789abcdef")


def with_id(text: str) -> Q:
    """The execution with this id; none if the text is no number."""
    return Q(pk=int(text)) if is_number(text) else Q(pk__in=())


def with_key(text: str) -> Q:
    """The executions whose key begins with the text."""
    return Q(execution_key__startswith=text)
