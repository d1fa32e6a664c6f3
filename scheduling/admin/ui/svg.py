"""Makes inline SVG pictures as safe HTML. The style sheet gives the colours. No script is needed.

Elements never have a `style` attribute, because a strict Content-Security-Policy forbids this attribute. A CSS class
selects the colour, and the style sheet can change the colour in dark mode. Every value is escaped.

A picture without links has `role="img"`: for a screen reader, the picture is one image with one name. A picture with
links has `role="group"`, because a screen reader finds no links inside an image. Each link then has its own name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from django.utils.html import conditional_escape, format_html
from django.utils.safestring import SafeString, mark_safe

Number = int | float


def element(name: str, *children: object, **attributes: object) -> SafeString:
    """An element. The argument `class_` becomes the attribute `class`, and `aria_label` becomes `aria-label`.

    An attribute whose value is None is left out.
    """
    parts = [f"<{name}"]
    for key, value in attributes.items():
        if value is not None:
            said = f"{value:g}" if isinstance(value, float) else conditional_escape(value)  # type: ignore[arg-type]
            parts.append(f' {key.rstrip("_").replace("_", "-")}="{said}"')
    parts.append(">")
    parts.extend(conditional_escape(child) for child in children)  # type: ignore[arg-type]
    parts.append(f"</{name}>")
    # The text is safe, because names are constants in the caller's code, and values and children were escaped above.
    # `format_html` would take three times as long, and a page has thousands of elements.
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
    """The `<svg>` element. Width and height set only the proportions, because the style sheet may scale the picture.

    Args:
        label: describes the picture. It is the picture's title and its name for screen readers.
        linked: whether the picture contains links.
        stretched: whether the style sheet may scale width and height independently.
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
    """A rectangle. Its title is shown when the mouse is over the rectangle."""
    return element("rect", *_title(title), x=x, y=y, width=width, height=height, class_=css, **more)


def circle(x: Number, y: Number, radius: Number, css: str, title: object = "", **more: object) -> SafeString:
    """A dot."""
    return element("circle", *_title(title), cx=x, cy=y, r=radius, class_=css, **more)


def path(d: str, css: str) -> SafeString:
    """A line or another shape. Screen readers skip the path and read the titles of the rectangles and dots."""
    return element("path", d=d, class_=css, aria_hidden="true")


def text(x: Number, y: Number, words: object, css: str = "sch-svg-text", anchor: str = "start") -> SafeString:
    """A label of an axis. The label is hidden from screen readers, because each shape's title has the day or time."""
    return element("text", words, x=x, y=y, class_=css, text_anchor=anchor, aria_hidden="true")


def link(address: str, label: object, *shapes: object, skipped: bool = False) -> SafeString:
    """Shapes as a link. If the URL `address` is empty, the shapes are an image whose name is the label.

    Args:
        skipped: whether the Tab key skips this link. Set it if a link in the text leads to the same page.
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
    """The heights of bars. The bar of the largest value has the height `height`. No bar is lower than `least`."""
    top = max(values, default=0.0)
    return [max(least, round(value / top * height, 1)) if top > 0 else float(least) for value in values]


def meter(share: float, label: object, css: str = "", width: Number = 90, height: Number = 8) -> SafeString:
    """A line that is filled up to a share of its width. A share above 1 fills the whole line."""
    filled = round(max(0.0, min(share, 1.0)) * width, 1)
    shapes = [
        rect(0, 0, width, height, "sch-meter-all", rx=height / 2),
        rect(0, 0, filled, height, f"sch-meter-part {css}".strip(), rx=height / 2),
    ]
    return picture(width, height, label, shapes, css="sch-meter")


def _title(title: object) -> tuple[SafeString, ...]:
    return (format_html("<title>{}</title>", title),) if title else ()
