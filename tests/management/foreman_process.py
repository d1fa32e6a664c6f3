"""A script that runs a foreman. Its arguments are two JSON objects: the children by name, and the foreman's options."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from scheduling.management.child import Backoff, ChildSpec
from scheduling.management.foreman import Foreman
from scheduling.management.log_prefix import Prefixer


def spec_of(name: str, given: Any) -> ChildSpec:
    """Make the spec of a child: its Python code, a list of command words, or a pair of code and a file.

    The child of a pair runs while the file exists. The words in the file are its further arguments.
    """
    demand = None
    if isinstance(given, dict):
        path = Path(given["demand"])
        given = given["code"]

        def demand() -> list[str] | None:
            return path.read_text().split() if path.exists() else None

    argv = [sys.executable, "-c", given] if isinstance(given, str) else given
    return ChildSpec(name, argv, os.environ, demand)


def main() -> int:
    """Run a foreman and return its exit code."""
    children, options = json.loads(sys.argv[1]), json.loads(sys.argv[2])
    backoff = Backoff(**options.pop("backoff", {}))
    specs = [spec_of(name, given) for name, given in children.items()]
    out = Prefixer(sys.stdout, children, own="up", colour=False)
    return Foreman(specs, out, backoff=backoff, **options).run()


if __name__ == "__main__":
    sys.exit(main())
