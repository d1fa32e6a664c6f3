"""docs/openapi.json, the OpenAPI document of the HTTP API. `make openapi` writes it."""

from __future__ import annotations

import json
import os
from pathlib import Path

FILE = Path(__file__).parents[2] / "docs" / "openapi.json"


def document() -> str:
    """Return what the file should contain."""
    from scheduling.http.documents import openapi

    return json.dumps(openapi("/cron/"), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    import django

    django.setup()
    FILE.write_text(document(), encoding="utf-8")
