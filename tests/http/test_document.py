"""docs/openapi.json is what the code makes."""

from __future__ import annotations

import json

from django.test import Client

from tests.http.document_file import FILE, document


def test_the_file_in_the_docs_is_the_document() -> None:
    assert FILE.read_text(encoding="utf-8") == document(), "After a change to the HTTP API, run `make openapi`."


def test_the_site_serves_the_same_document_without_a_token() -> None:
    assert Client().get("/cron/openapi.json").json() == json.loads(document())
