"""Which handlers a consumer runs, by patterns for their names."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from scheduling.core.wait_sentences import NOT_RUN_HERE

_WRITTEN = re.compile(r"(?:--only (.+?))?(?:(?:^| )--except (.+))?", re.DOTALL)


@dataclass(frozen=True)
class Chosen:
    """A choice of handlers. Without patterns, it has all of them.

    Args:
        only: patterns such as `reports.*`, of which a name must match one; none: each name does.
        without: patterns of which a name must match none.
    """

    only: tuple[str, ...] = ()
    without: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.only or self.without)

    def __contains__(self, name: str) -> bool:
        return (not self.only or _matches(name, self.only)) and not _matches(name, self.without)

    def __str__(self) -> str:
        return " ".join(
            f"{option} {','.join(patterns)}"
            for option, patterns in (("--only", self.only), ("--except", self.without))
            if patterns
        )

    @classmethod
    def parse(cls, text: str) -> Chosen:
        """The choice that `str` has written; that of all handlers if the text is no such choice."""
        found = _WRITTEN.fullmatch(text)
        only, without = found.groups() if found else (None, None)
        return cls(tuple((only or "").split(",")) if only else (), tuple(without.split(",")) if without else ())

    def unused(self, names: Iterable[str]) -> list[str]:
        """The patterns that no name matches."""
        known = list(names)
        return [pattern for pattern in (*self.only, *self.without) if not any(_matches(n, (pattern,)) for n in known)]


EVERYTHING = Chosen()


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def reason_for_left_out(subject: str, here: str, chosen: Chosen) -> str:
    """Why a run waits that a consumer does not run.

    Args:
        subject: names the handler, such as `the worker 'sync'`.
        here: the name of this consumer.
    """
    return NOT_RUN_HERE.format(here=here, subject=subject, chosen=chosen)
