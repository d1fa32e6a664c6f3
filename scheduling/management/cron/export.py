"""`cron export`: writes schedules into a file, for a repository."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from django.utils.translation import gettext as _

from scheduling.core.schedule_files import FileInvalid, write
from scheduling.core.yaml_documents import YamlMissing
from scheduling.management.cron.console import Console
from scheduling.management.cron.exit_codes import Exit
from scheduling.management.cron.schedule_file import FORMATS, STANDARD, format_of, invalid, must_be_new, write_text
from scheduling.operations.refused import Code, Refused
from scheduling.operations.schedule_export import export

HELP = "Writes schedules into a file, without secrets."


def add_arguments(parser: ArgumentParser) -> None:
    """FILE, --schedule, --source, --force and --format."""
    parser.add_argument("file", nargs="?", default=STANDARD, metavar="FILE", help="- (the default): standard output")
    one = "only this schedule, by its name or id; may be repeated"
    parser.add_argument("--schedule", action="append", default=[], metavar="NAME", help=one)
    parser.add_argument("--source", metavar="NAME", help="only the schedules that the file with this name owns")
    parser.add_argument("--force", action="store_true", help="replace FILE if it exists")
    parser.add_argument("--format", choices=FORMATS, help="default: yaml for FILE.yaml and FILE.yml, else json")


def run(console: Console, options: Mapping[str, Any]) -> int:
    """Write the file. What it leaves out is named on stderr. The exit code is 1 if it cannot hold a schedule."""
    file = options["file"]
    if not options["force"]:
        must_be_new(file)
    made = export(console.actor(), options["schedule"], options["source"])
    to_stdout = file == STANDARD
    format_ = "json" if to_stdout and console.as_json else format_of(file, options["format"])
    try:
        text = write(made.entries, format_, list(made.calendars.values()))
    except FileInvalid as error:
        raise invalid(error) from None
    except YamlMissing as error:
        raise Refused(Code.INVALID, str(error)) from None
    if to_stdout:
        console.document(text)
    else:
        write_text(file, text)
        if console.as_json:
            left_out = [asdict(row) for row in made.left_out]
            console.json("export", file=file, count=len(made.entries), left_out=left_out, notes=made.notes)
        else:
            console.say(_("Schedules in %(file)s: %(count)s.") % {"file": file, "count": len(made.entries)})
    for note in made.notes:
        console.note(note)
    return Exit.NOT_DONE if made.left_out else Exit.DONE
