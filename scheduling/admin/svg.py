"""Inline SVG as safe elements: drawn by the server, coloured by the style sheet, without a script.

Attributes only, never `style=`, which a strict Content-Security-Policy refuses. A colour is a class, so
that dark mode is the style sheet's matter. Every value is escaped on its way in.

A picture that is only looked at has `role="img"`: to a screen reader it is one image with one name. One
that holds links has `role="group"`, for inside an image no link would be found; there each link carries
its own name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from django.utils.html import conditional_escape, format_html
from django.utils.safestring import SafeString, mark_safe

Number = int | float


def element(name: str, *children: object, **attributes: object) -> SafeString:
    """An element. `class_` is written `class`, `aria_label` `aria-label`; an attribute that is None is left out."""
    parts = [f"<{name}"]
    for key, value in attributes.items():
        if value is not None:
            said = f"{value:g}" if isinstance(value, float) else conditional_escape(value)  # type: ignore[arg-type]
            parts.append(f' {key.rstrip("_").replace("_", "-")}="{said}"')
    parts.append(">")
    parts.extend(conditional_escape(child) for child in children)  # type: ignore[arg-type]
    parts.append(f"</{name}>")
    # Names are constants of the caller's code; values and children were escaped one by one, which
    # is what format_html does, at a third of its price: a page draws thousands.
    return mark_safe("".join(parts))  # noqa: S308


def picture(
    width: Number,
    height: Number,
    label: object,
    children: Iterable[object],
    *,
    css: str = "",
    linked: bool = False,
    stretched: bool = False,
) -> SafeString:
    """The whole: its size is its shape, for the style sheet may scale it. `label` says what one would see.

    Args:
        stretched: width and height are scaled apart from each other.
    """
    return element(
        "svg",
        element("title", label),
        *children,
        viewBox=f"0 0 {width:g} {height:g}",
        width=width,
        height=height,
        preserveAspectRatio="none" if stretched else None,
        class_=f"sch-svg {css}".strip(),
        role="group" if linked else "img",
        aria_label=label,
        focusable="false",
    )


def rect(
    x: Number, y: Number, width: Number, height: Number, css: str | None, title: object = "", **more: object
) -> SafeString:
    """A rectangle, with a title that shows when it is pointed at."""
    return element("rect", *_title(title), x=x, y=y, width=width, height=height, class_=css, **more)


def circle(x: Number, y: Number, radius: Number, css: str, title: object = "", **more: object) -> SafeString:
    """A dot."""
    return element("circle", *_title(title), cx=x, cy=y, r=radius, class_=css, **more)


def path(d: str, css: str) -> SafeString:
    """A line or mark, hidden from screen readers: what it adds stands in the title of its shape."""
    return element("path", d=d, class_=css, aria_hidden="true")


def text(x: Number, y: Number, words: object, css: str = "sch-svg-text", anchor: str = "start") -> SafeString:
    """A label of an axis. Hidden from screen readers: every shape says its own place."""
    return element("text", words, x=x, y=y, class_=css, text_anchor=anchor, aria_hidden="true")


def link(address: str, label: object, *shapes: object, skipped: bool = False) -> SafeString:
    """Shapes that lead somewhere; without an address, the shapes alone as an image of that name.

    Args:
        skipped: not a stop of the tab key, where the same is reached by a link in the text.
    """
    if not address:
        return element("g", element("title", label), *shapes, role="img", aria_label=label)
    return element(
        "a",
        element("title", label),
        *shapes,
        href=address,
        aria_label=label,
        class_="sch-svg-link",
        tabindex="-1" if skipped else None,
    )


def bars(values: Sequence[float], height: Number, least: Number = 2) -> list[float]:
    """Heights of bars over `height`, the largest filling it; a value above nothing is still seen."""
    top = max(values, default=0.0)
    return [max(least, round(value / top * height, 1)) if top > 0 else float(least) for value in values]


def meter(share: float, label: object, css: str = "", width: Number = 90, height: Number = 8) -> SafeString:
    """A part of a whole as a filled line; more than the whole fills it."""
    filled = round(max(0.0, min(share, 1.0)) * width, 1)
    shapes = [
        rect(0, 0, width, height, "sch-meter-all", rx=height / 2),
        rect(0, 0, filled, height, f"sch-meter-part {css}".strip(), rx=height / 2),
    ]
    return picture(width, height, label, shapes, css="sch-meter")


def _title(title: object) -> tuple[SafeString, ...]:
    return (format_html("<title>{}</title>", title),) if title else ()
