"""Handlers whose finished work is not done again. Each effect in the database is a Group with a name of its own."""

from __future__ import annotations

import os
import time
import uuid
from pathlib import Path
from typing import Protocol

from django.contrib.auth.models import Group, User
from pydantic import BaseModel

from scheduling.handlers import RetryPolicy, Run, worker

OFTEN = RetryPolicy(max_retries=19, delay_ms=1000, multiplier=1.0)


class SurvivalParams(BaseModel):
    """The directory of the files that the handlers write, and the length of a step in seconds."""

    directory: str
    seconds: float = 0.05
    prefix: str = ""


def effect(run: Run, name: object) -> None:
    """Leave one row for each time that this work is done and committed."""
    Group.objects.create(name=f"{run.execution_id}:{name}:{run.attempt}:{uuid.uuid4().hex[:8]}")


class HasDirectory(Protocol):
    """The params of a handler that notes what it does."""

    directory: str


def note(params: HasDirectory, run: Run, word: str) -> None:
    """Append a line to the file of the execution, in one write."""
    with (Path(params.directory) / f"{run.execution_id}.txt").open("ab", buffering=0) as file:
        file.write(f"{word} {run.attempt} {os.getpid()} {os.getppid()}\n".encode())


@worker("tests.five_steps", params=SurvivalParams, retry=OFTEN)
def five_steps(params: SurvivalParams, run: Run) -> list[int]:
    """Has three steps with effects in the database, and two with effects in a file."""
    note(params, run, "start")

    def inside(name: str, number: int) -> int:
        time.sleep(params.seconds / 2)
        effect(run, name)
        time.sleep(params.seconds / 2)  # a kill may fall between the effect and the commit
        return number

    def outside(name: str, number: int) -> int:
        time.sleep(params.seconds / 2)
        note(params, run, name)
        time.sleep(params.seconds / 2)
        return number

    return [
        run.step("a", inside, "a", 1),
        run.step("b", outside, "b", 2, atomic=False),
        run.step("c", inside, "c", 3),
        run.step("d", outside, "d", 4, atomic=False),
        run.step("e", inside, "e", 5),
    ]


@worker("tests.each_user", params=SurvivalParams, retry=OFTEN)
def each_user(params: SurvivalParams, run: Run) -> None:
    """Has one effect for each user whose name begins with the prefix."""
    note(params, run, "start")

    def visit(user: User) -> None:
        time.sleep(params.seconds / 2)
        effect(run, user.pk)
        time.sleep(params.seconds / 2)

    run.each(User.objects.filter(username__startswith=params.prefix), visit)
