"""`python -m cronsite`, `cronsite` and `manage.py` are the same command."""

import os
import sys


def main() -> int:
    """Run Django's command line with this site's settings."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "cronsite.settings")
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)
    return 0


if __name__ == "__main__":
    sys.exit(main())
