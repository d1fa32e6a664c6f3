#!/usr/bin/env python
"""The command line of this site."""

import sys

from cronsite.__main__ import main

if __name__ == "__main__":
    sys.exit(main())
