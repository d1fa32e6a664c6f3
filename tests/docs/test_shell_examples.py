"""Each `manage.py` command in an example of a page exists, and has the options that stand there."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

import pytest
from django.core.management import get_commands, load_command_class
from django.core.management.base import BaseCommand

from tests.docs import pages

FENCE = re.compile(r"^ *```(?:sh|console)?[^\n]*\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
CALL = re.compile(
    r"^(?:\$ )?(?:\w+=\S+ )*(?:docker compose run --rm \w+|cronsite|(?:\S*python )?(?:\./)?manage\.py) (.+)$"
)
ENDS = re.compile(r"\s(?:#|>|\||&&|<)(?:\s|$)")


def calls() -> Iterator[tuple[str, str, str]]:
    """The page, the name of the command and its arguments, for each call in a block of a page."""
    for page in [*pages.pages(), *pages.ABOVE]:
        for block in FENCE.findall(page.read_text()):
            for line in block.replace("\\\n", " ").splitlines():
                if (match := CALL.match(line.strip())) and "…" not in line and "..." not in line:
                    name, _, arguments = ENDS.split(match[1])[0].strip().partition(" ")
                    yield page.name, name, arguments


CALLS = sorted(set(calls()))


def test_there_are_many_calls_on_many_pages() -> None:
    assert len(CALLS) > 80
    assert len({page for page, _name, _arguments in CALLS}) > 10


@pytest.mark.parametrize(("page", "name", "arguments"), CALLS)
def test_the_call_can_be_read(page: str, name: str, arguments: str) -> None:
    app = get_commands().get(name)
    assert app is not None, f"{page}: there is no command {name}"
    command = app if isinstance(app, BaseCommand) else load_command_class(app, name)
    command.create_parser("manage.py", name).parse_args(shlex.split(arguments))
