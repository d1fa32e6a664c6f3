"""Style sheets and scripts of the pages."""

from __future__ import annotations

from django import forms


def page_media(*, sheets: tuple[str, ...] = (), scripts: tuple[str, ...] = ()) -> forms.Media:
    """The style sheets and scripts in `static/scheduling/` that have these names."""
    return forms.Media(
        css={"all": [f"scheduling/{name}.css" for name in sheets]},
        # The scripts are in the head but need elements of the body, so the browser must run them later.
        js=[forms.Script(f"scheduling/{name}.js", defer=True) for name in scripts],  # type: ignore[misc]  # the stubs know only paths
    )


MEDIA = page_media(sheets=("admin", "lists"))
"""The style sheets that all pages need."""
