"""The contract of a handler's params as a hash, so that processes can tell whether their versions of it differ."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from pydantic import BaseModel

from scheduling.handlers.registry import Handler


def contract(handler: Handler) -> str:
    """The hash of the handler's params contract: the JSON schema of the model and the code of its own validators.

    Two versions of Python or pydantic may give two hashes for the same model. A hash only decides whether a run whose
    params were refused waits for another process, so a needless difference costs a delay.
    """
    return _contract(handler.params)


def model_contract(model: type[BaseModel] | None) -> str:
    """The same for the params model of a listener; empty if it has none."""
    return "" if model is None else _contract(model)


@cache
def _contract(model: type[BaseModel]) -> str:
    try:
        schema: Any = model.model_json_schema()
    except Exception:  # a field may have a type that JSON schema cannot describe
        schema = {name: repr(field) for name, field in model.model_fields.items()}
    text = json.dumps([schema, list(_validators(model))], sort_keys=True, default=repr)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _validators(model: type[BaseModel]) -> Iterator[tuple[str, str, str]]:
    """The name, the bytecode and the constants of each validator. The JSON schema does not contain validators."""
    found = model.__pydantic_decorators__
    kinds: list[Mapping[str, Any]] = [found.validators, found.field_validators]
    kinds += [found.root_validators, found.model_validators]
    for kind in kinds:
        for name, decorator in sorted(kind.items()):
            code = getattr(getattr(decorator.func, "__func__", decorator.func), "__code__", None)
            if code is not None:
                plain = [value for value in code.co_consts if isinstance(value, str | int | float | None)]
                yield name, code.co_code.hex(), repr(plain)
