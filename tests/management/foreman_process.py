"""A foreman over the commands that a test names: `'{"name": "code"}' '{"option": 1}'`."""

from __future__ import annotations

import json
import os
import sys

from scheduling.management.foreman import Backoff, ChildSpec, Foreman
from scheduling.management.prefix import Prefixer


def main() -> int:
    """Run Python code by name under a foreman with the options given as JSON."""
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
