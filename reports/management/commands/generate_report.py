"""`manage.py generate_report` makes one report in the foreground, for developers who write it and for one-off files."""

from __future__ import annotations

import json
import shutil
from argparse import ArgumentParser
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

from django.core.checks import Tags
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError

from reports.complete_file import complete_file
from reports.foreground import ForegroundReport, foreground_report
from reports.generation import generate
from reports.renderers import FORMATS
from scheduling.handlers import NonRetryableError, UnknownHandler
from scheduling.handlers.params import ParamsInvalid

INTERRUPTED = 130
"""Exit code of a command that Ctrl-C has ended."""

STDOUT = "-"


class Command(BaseCommand):
    """Writes a report to standard output or to files. Nothing is stored in the database, and nothing is mailed."""

    help = "Makes one report in the foreground, without an execution. Its params are checked as for a scheduled report."
    requires_system_checks = (Tags.models,)

    def add_arguments(self, parser: ArgumentParser) -> None:
        """CONTROLLER, --params, --format, --output."""
        parser.add_argument("controller", metavar="CONTROLLER", help="the registered name of the report")
        params = "params as a JSON object; they replace those of the report's row"
        parser.add_argument("--params", default="{}", metavar="JSON", help=params)
        parser.add_argument("--format", default="", choices=FORMATS, help="the only format of the report")
        output = (
            "a file, a folder, or - for standard output (default: standard output for one format, "
            "files in the current folder for several)"
        )
        parser.add_argument("--output", default="", metavar="PATH", help=output)

    def handle(self, *_args: Any, **options: Any) -> None:
        """Check the arguments, and write the report.

        Raises:
            CommandError: an argument is wrong, or the report cannot be made. Each error is one line.
        """
        try:
            report = self._report(options)
            self._say("No execution is recorded.")
            if report.options.recipients:
                self._say(f"Nothing is mailed to {', '.join(report.options.recipients)}.")
            targets = _targets(report, options["output"])
            count = self._write_files(report, targets) if targets else self._write_stdout(report)
        except NonRetryableError as error:
            raise CommandError(str(error)) from None
        except KeyboardInterrupt:
            raise CommandError("Interrupted. No file is left.", returncode=INTERRUPTED) from None
        finally:
            self._end_progress()
        self._say(f"Wrote {count} rows to {', '.join(map(str, targets.values())) or 'standard output'}.")

    def _report(self, options: dict[str, Any]) -> ForegroundReport:
        try:
            return foreground_report(
                options["controller"], _json_object(options["params"]), options["format"], self._show_progress
            )
        except UnknownHandler as error:
            raise CommandError(str(error)) from None
        except DatabaseError as error:
            raise CommandError(f"The row of the report cannot be read: {error}.") from None
        except ParamsInvalid as error:
            raise CommandError(
                "\n".join(f"{name}: {text}" if name else text for name, text in error.errors.items())
            ) from None

    def _write_files(self, report: ForegroundReport, targets: dict[str, Path]) -> int:
        with ExitStack() as stack:
            files: dict[str, IO[bytes]] = {}
            for name, path in targets.items():
                try:
                    files[name] = stack.enter_context(complete_file(path))
                except OSError as error:
                    raise CommandError(f"{path} cannot be written: {error.strerror or error}.") from None
            return generate(report.controller, report.params, report.run, files)

    def _write_stdout(self, report: ForegroundReport) -> int:
        (name,) = report.formats
        stream = getattr(self.stdout, "buffer", None)
        if stream is None or (name == "xlsx" and self.stdout.isatty()):
            raise CommandError("A terminal cannot show this report. Write it to a file: --output PATH.")
        with TemporaryFile(prefix="report-") as file:  # a report that fails midway prints nothing
            count = generate(report.controller, report.params, report.run, {name: file})
            file.seek(0)
            try:
                shutil.copyfileobj(file, stream)
                stream.flush()
            except BrokenPipeError:
                raise CommandError("Standard output was closed before the end of the report.") from None
        return count

    def _show_progress(self, text: str) -> None:
        if self.stderr.isatty():
            self.stderr.write(f"\r{text} ", ending="", style_func=str)
            self.stderr.flush()

    def _end_progress(self) -> None:
        if self.stderr.isatty():
            self.stderr.write("\r\x1b[K", ending="", style_func=str)  # the next message gets an empty line

    def _say(self, text: str) -> None:
        self.stderr.write(text, style_func=str)


def _json_object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CommandError(f"--params is not JSON: {error}.") from None
    if not isinstance(found, dict):
        raise CommandError("--params must be a JSON object, such as '{\"days\": 7}'.")
    return found


def _targets(report: ForegroundReport, output: str) -> dict[str, Path]:
    """The path of the file of each format; empty for standard output."""
    several = len(report.formats) > 1
    if output == STDOUT and several:
        raise CommandError(f"Standard output takes one format. Choose it with --format: {', '.join(report.formats)}.")
    if output == STDOUT or (not output and not several):
        return {}
    path = Path(output)  # an empty text is the current folder
    if path.is_dir():
        targets = {name: path / report.filename(name) for name in report.formats}
    elif several:
        raise CommandError(f"The report has {len(report.formats)} files: {path} must be a folder that exists.")
    else:
        targets = {report.formats[0]: path}
    for target in targets.values():
        if target.exists() and not target.is_file():
            # A new file would replace a device such as /dev/null, a pipe or a folder.
            raise CommandError(f"{target} is not a file, and is not replaced.")
    return targets
