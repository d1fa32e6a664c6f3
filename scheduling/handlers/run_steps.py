"""The methods of `Run` for work that survives a crash, a retry and a deploy."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, TypeVar, TypeVarTuple

from django.db.models import Model, QuerySet

from scheduling.handlers.steps import Steps

Arguments = TypeVarTuple("Arguments")
Result = TypeVar("Result")
Row = TypeVar("Row", bound=Model)


class RunSteps:
    """What is finished is not done again by a later attempt of the same execution.

    All methods may end the attempt with `FencedOff` or `HandedBack`, which are no `Exception`: do not catch them.
    """

    steps: Steps

    def step(
        self, name: str, function: Callable[[*Arguments], Result], *args: *Arguments, atomic: bool = True
    ) -> Result:
        """Call `function(*args)` once, and return its result. Later attempts return the stored result.

        Args:
            name: printable ASCII, at most 100 characters, used once in a run. Case does not matter.
            function: its result is JSON of at most 64 kB. For keyword arguments, pass a lambda.
            atomic: whether the function runs in a transaction of the default database, which also stores that the step
                is finished. So its writes happen exactly once. If False, there is no transaction, and this is stored
                after the function has returned: the function is called at least once, and never after this.

        Raises:
            StepError: the name is used twice, another step is not finished, or the result cannot be stored.
            Exception: what the function raises. The step is then not finished.
        """
        result: Result = self.steps.step(name, function, args, atomic=atomic)
        return result

    def each(self, rows: QuerySet[Row], function: Callable[[Row], object], key: str = "pk", name: str = "") -> int:
        """Call the function for each row, in the order of the key, each in a transaction of its own.

        The transaction also stores the position. So the writes for a row happen exactly once, and a later attempt goes
        on with the next row. A row that appears before the position later on is not visited.

        Args:
            rows: a queryset of the default database, without a slice. Its own order is ignored.
            function: gets each row as it is at this time. Rows that the queryset no longer includes are left out.
            key: a unique column without NULL.
            name: the name of the position; the default is the label of the model, such as `shop.Order`.

        Returns:
            For how many rows this attempt has called the function.

        Raises:
            StepError: the queryset, the key or the name does not fit.
            Exception: what the function raises. The position is then that of the row before.
        """
        return self.steps.each(rows, function, key, name)

    def atomic(self) -> AbstractContextManager[None]:
        """A transaction of the default database. It is committed only if this attempt still owns its execution.

        Raises:
            StepError: a step or a transaction is open already.
        """
        return self.steps.atomic()

    def checkpoint(self, value: Any, *, every: float = 0.0) -> None:
        """Store how far the work is. A later attempt finds the value in `cursor`.

        Inside `with run.atomic():`, the value is committed together with the writes of the block. Otherwise, it is
        committed at once, or when its turn comes.

        Args:
            value: JSON of at most 64 kB. Operators see its beginning.
            every: seconds, at most 60. Outside of `run.atomic`, nothing is stored before so much time has passed since
                the last checkpoint, unless the consumer stops. An attempt that ends in between loses the values of
                this time. So a handler of many small items does not wait for the database after each of them.

        Raises:
            StepError: the value is not such JSON, `every` is out of bounds, or the call is inside a step or inside
                another transaction.
        """
        self.steps.checkpoint(value, every)

    @property
    def cursor(self) -> Any:
        """The value of the last stored checkpoint; None if there is none."""
        return self.steps.cursor

    @property
    def stopping(self) -> bool:
        """Whether the consumer was asked to stop. The run is then given back at its next checkpoint."""
        return self.steps.stopping()
