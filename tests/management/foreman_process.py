"""A script that runs a foreman. Its arguments are two JSON objects: the children by name, and the foreman's options."""

from __future__ import annotations

import json
import os
import sys

from scheduling.management.child import Backoff, ChildSpec
from scheduling.management.foreman import Foreman
from scheduling.management.log_prefix import Prefixer


def main() -> int:
    """Run a foreman and return its exit code. Each child is given as Python code or as a list of command words."""
    children, options = json.loads(sys.argv[1]), json.loads(sys.argv[2])
    backoff = Backoff(**options.pop("backoff", {}))
    specs = [
        ChildSpec(name, [sys.executable, "-c", code] if isinstance(code, str) else code, os.environ)
        for name, code in children.items()
    ]
    out = Prefixer(sys.stdout, children, own="up", colour=False)
    return Foreman(specs, out, backoff=backoff, **options).run()


if __name__ == "__main__":
    sys.exit(main())
