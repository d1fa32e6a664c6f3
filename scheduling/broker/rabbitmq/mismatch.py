"""Tells which argument of an existing queue or exchange differs from our declaration."""

from __future__ import annotations

import re
from dataclasses import dataclass

_MISMATCH = re.compile(
    r"inequivalent arg '(?P<argument>[^']*)' for (?P<kind>queue|exchange) '(?P<name>[^']*)' "
    r"in vhost '(?P<vhost>[^']*)': received (?P<wanted>.*?),? but current is (?P<found>.*)",
    re.DOTALL,
)


@dataclass(frozen=True)
class Mismatch:
    """An existing queue or exchange with an argument that differs from our declaration."""

    kind: str
    name: str
    argument: str
    wanted: str
    found: str
    vhost: str

    def sentence(self) -> str:
        """A text for operators: what is wrong, and two ways to solve it."""
        command = f"rabbitmqctl delete_queue {self.name} --vhost {self.vhost}"
        if self.kind == "exchange":
            command = f"rabbitmqadmin --vhost={self.vhost} delete exchange name={self.name}"
        return (
            f"The {self.kind} {self.name!r} exists with {self.argument} = {self.found}, but {self.wanted} is wanted. "
            f"Stop producers and consumers, let it run empty, and delete it ({command}); the next start declares it "
            "anew. Or leave it alone, and give CRON_BROKER_URL a ?prefix= of its own."
        )


def mismatch(text: str) -> Mismatch | None:
    """Parse the text with which the broker refuses a declaration (406); None if the text has another form."""
    found = _MISMATCH.search(text)
    if found is None:
        return None
    values = {name: value.strip() for name, value in found.groupdict().items()}
    for name in ("wanted", "found"):
        value = re.sub(r"^the value '(.*)' of type '\w+'$", r"'\1'", values[name])
        values[name] = "no value" if value == "none" else value
    return Mismatch(**values)
