"""The formats in which a report can be written, one module for each."""

from __future__ import annotations

from reports.renderers.csv_file import CsvRenderer
from reports.renderers.html_page import HtmlRenderer
from reports.renderers.json_array import JsonRenderer
from reports.renderers.json_lines import JsonLinesRenderer
from reports.renderers.renderer import Renderer
from reports.renderers.workbook import XlsxRenderer

RENDERERS: dict[str, type[Renderer]] = {
    renderer.extension: renderer
    for renderer in (CsvRenderer, HtmlRenderer, JsonRenderer, JsonLinesRenderer, XlsxRenderer)
}
"""The renderer of each format. The keys are the format names that a controller can use. A format is named after the
extension of its files."""

FORMATS = tuple(RENDERERS)
"""The names of all formats, in alphabetical order."""
