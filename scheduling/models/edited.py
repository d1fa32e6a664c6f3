"""Which of Django's default permissions mean something: users edit the rows of few models, all others are read-only."""

from __future__ import annotations

from scheduling.core.targets import TARGETS

STANDARD = ("view", "add", "change", "delete")
"""The code name of each of Django's default permissions begins with one of these words. Every other permission allows
one action of operators, such as republish."""

EDITED = ("scheduler", *TARGETS, "channel", "alertrule", "calendar")
"""The models whose rows users edit in the admin. The rows of all other models are read-only there."""


def is_standard(codename: str, model: str) -> bool:
    """Whether it is one of Django's default permissions of this model."""
    verb, _line, rest = codename.partition("_")
    return verb in STANDARD and rest == model


def has_use(codename: str, model: str) -> bool:
    """Whether a permission of this model allows anything."""
    return not is_standard(codename, model) or codename.startswith("view_") or model in EDITED
