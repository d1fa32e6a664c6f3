"""Calls a batch handler in the child: one call for many runs. The answer says how each of them has ended."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

from scheduling.consumer.child_answers import ended_by, failed, portable, succeeded
from scheduling.consumer.handler_call import call, surroundings
from scheduling.consumer.run_params import checked_params
from scheduling.consumer.terminated import Terminated
from scheduling.core.batch import error_in, results_of
from scheduling.handlers import Handler
from scheduling.handlers.batch_run import BatchRun, NoSteps
from scheduling.handlers.error_rules import RETRY_ALL
from scheduling.handlers.params import ParamsInvalid, merge
from scheduling.handlers.run import Run, run_from
from scheduling.logs import RunLogger

MEMBERS = "members"
"""The field of a task, and of an answer, that has an entry for each run of a batch."""

ANSWER_CHARACTERS = 12_000_000
"""The results and tracebacks of all runs together have at most so many characters, less than one frame may have."""

Member = dict[str, Any]
"""The params and the facts of one run, as `Batch.task` makes them."""


class Watcher(AbstractContextManager[Any], Protocol):
    """Sees what handlers raise (`scheduling.testing`): in its block, the error that ends the whole call."""

    def ends_member(self, number: int, error: BaseException) -> None:
        """Take note of the error with which only one run of a batch ends."""


def members_of(task: Mapping[str, Any]) -> list[Member]:
    """The runs of a task: those of a batch, or the only one."""
    return task.get(MEMBERS) or [{"params": task["params"], "run": task["run"]}]


class BatchCall:
    """One call of a batch handler.

    Args:
        ways: see `child.call_handler`.
    """

    def __init__(self, handler: Handler, task: dict[str, Any], ways: Mapping[str, Any], watch: Watcher | None) -> None:
        self._handler, self._task, self._watch = handler, task, watch
        self._ways = {name: way for name, way in ways.items() if name != "steps"}
        self._members = members_of(task)
        self._entries: list[dict[str, Any] | None] = [None] * len(self._members)
        """The answer of each run that ends in its own way; None for those that end as the call does."""
        self._called: list[int] = []
        """The numbers of the runs that the handler gets."""

    def answer(self) -> dict[str, Any]:
        """Call the handler; returns the answer for the consumer."""
        params = self._validated()
        answer = self._answer_of_call(params) if self._called else {**(self._entries[0] or {}), "op": "ended"}
        if MEMBERS not in self._task:  # a service, whose consumer expects the answer of a single run
            return answer | (self._entries[0] or {})
        return answer | ({MEMBERS: self._entries} if any(self._entries) else {})

    def _validated(self) -> list[Any]:
        """The params of the runs that the handler gets. A run whose params are refused fails alone."""
        found = []
        for number, member in enumerate(self._members):
            layers = member.get("target_params", self._task["target_params"]), member["params"]
            try:
                found.append(checked_params(self._handler, merge(*layers)))
            except ParamsInvalid as error:
                self._end(number, error, called=False)
            else:
                self._called.append(number)
        return found

    def _answer_of_call(self, params: list[Any]) -> dict[str, Any]:
        try:
            with self._watch or nullcontext():
                self._take(self._run(params), len(params))
        except Terminated:
            raise
        except BaseException as error:  # handlers may raise anything, and every exception is an outcome
            for number in self._called:
                self._entries[number] = None
            return ended_by(error, True, self._handler.errors)
        return succeeded()

    def _run(self, params: list[Any]) -> Any:
        with surroundings(self._task["run"]) as logger:
            runs = tuple(self._run_of(self._members[number], logger) for number in self._called)
            ways = {name: self._ways[name] for name in ("report_progress", "is_cancelled") if name in self._ways}
            return call(self._handler, params, BatchRun(runs, logger, self._task["run"]["deadline"], **ways))

    def _run_of(self, member: Member, logger: RunLogger) -> Run:
        facts = member["run"] | {"deadline": self._task["run"]["deadline"]}
        return run_from(facts, logger, steps=NoSteps(), **self._ways)

    def _take(self, returned: Any, count: int) -> None:
        """Take over what the handler has returned for its runs."""
        results = results_of(returned, count)
        if results is None:
            if returned is not None:
                text = "The result of the batch is not stored: it is a %s, no list"
                logging.getLogger("scheduling.run").info(text, type(returned).__name__)
            return
        most = ANSWER_CHARACTERS // count
        for number, result in zip(self._called, results, strict=True):
            if (error := error_in(result)) is not None:
                self._end(number, error, called=True)
                continue
            text = portable(result)
            if len(text) > most:
                logging.getLogger("scheduling.run").info("The result of run %s is too long to be stored", number + 1)
            elif text:
                self._entries[number] = succeeded(text)

    def _end(self, number: int, error: BaseException, *, called: bool) -> None:
        if self._watch is not None:
            self._watch.ends_member(number, error)
        answer = ended_by(error, called, self._handler.errors if called else RETRY_ALL)
        if answer["outcome"] not in ("failed", "snoozed"):
            answer = failed(error)  # such as an error of the steps, which a batch does not have
        most = ANSWER_CHARACTERS // len(self._members)
        # The answer is packed as a whole. A strange value, such as a `retry_after` that is no number, is left out.
        plain = {name: value for name, value in answer.items() if type(value) in (str, int, float, bool)}
        self._entries[number] = {name: value[:most] if type(value) is str else value for name, value in plain.items()}
