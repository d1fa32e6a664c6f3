"""Built-in workers: what a project can schedule without writing code."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Annotated, Any

from django.core.management import CommandError, call_command, get_commands, load_command_class
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from scheduling.conf import get_conf
from scheduling.run import Run

ARGUMENT_LIMIT = 500
ARGUMENTS_LIMIT = 50

CODE_OPTIONS = ("--pythonpath", "--settings")
"""Options of every command that say where code is read from; nothing stored in a row may say that."""


def _refuse(code: str, text: str) -> PydanticCustomError:
    # Not ValueError: pydantic would put "Value error, " before the sentence.
    return PydanticCustomError(code, "{text}", {"text": text})


def _allowed(command: str) -> str:
    allowed = get_conf().commands
    if command not in allowed:
        names = ", ".join(sorted(allowed)) or "none"
        raise _refuse(
            "command",
            f"{command!r} may not be run from here. Allowed: {names}. The setting CRON_COMMANDS says which.",
        )
    if command not in get_commands():
        raise _refuse("command", f"There is no management command {command!r} in this project.")
    return command


def _harmless(argument: str) -> str:
    name = argument.split("=", 1)[0]
    # The parser takes abbreviations: --set and --python do the same.
    if len(name) > len("--s") and any(option.startswith(name) for option in CODE_OPTIONS):
        raise _refuse("argument", f"{name} is not accepted: a schedule cannot say where code is read from.")
    if name in {"-h", "--help", "--version"}:
        raise _refuse("argument", f"{name} only prints a text: run it on a command line.")
    return argument


def _choices(schema: dict[str, Any]) -> None:
    """The schema names the allowed commands as they are now; at import no setting is read."""
    schema["enum"] = sorted(get_conf().commands)


class CommandParams(BaseModel):
    """Which command, and its arguments as one would type them."""

    model_config = ConfigDict(extra="forbid")

    command: Annotated[str, AfterValidator(_allowed)] = Field(
        description="One of the commands that CRON_COMMANDS allows.", json_schema_extra=_choices
    )
    args: list[Annotated[str, Field(max_length=ARGUMENT_LIMIT), AfterValidator(_harmless)]] = Field(
        default_factory=list,
        max_length=ARGUMENTS_LIMIT,
        description='Each word by itself, such as "--days" and "30".',
    )

    @model_validator(mode="after")
    def _arguments_fit(self) -> CommandParams:
        """A misspelt option is refused when it is saved, not at 3 AM."""
        parser = _parser(self.command)
        if parser is None:
            return self
        try:
            parsed = parser.parse_args(self.args)
        except CommandError as error:
            text = str(error).removeprefix("Error: ").rstrip(".")
            raise _refuse("arguments", f"{self.command} does not take these arguments: {text}.") from None
        except (Exception, SystemExit):
            return self  # the command reads them in a way of its own; the run will tell
        if getattr(parsed, "settings", None) or getattr(parsed, "pythonpath", None):
            raise _refuse("arguments", "A schedule cannot say where code is read from.")
        return self


def _parser(name: str) -> ArgumentParser | None:
    """The command's own parser; None when only a run can tell whether arguments fit."""
    app = get_commands()[name]
    try:
        command = load_command_class(app, name) if isinstance(app, str) else app
        parser = command.create_parser("manage.py", name)
    except Exception:
        return None  # broken code is the run's failure, and no fault of the params
    if any(type(action.type).__name__ == "FileType" for action in parser._actions):
        return None  # parsing would open the files, or empty them
    return parser


def run_command(params: CommandParams, run: Run) -> None:
    """Runs one of the management commands that CRON_COMMANDS allows.

    Raises:
        CommandError: the command's own, or for an exit with a code.
    """
    run.log.info("manage.py %s", " ".join([params.command, *params.args]))
    try:
        call_command(params.command, *params.args)
    except SystemExit as error:
        if error.code not in (None, 0):
            what = f"code {error.code}" if isinstance(error.code, int) else f"{error.code!r}"
            raise CommandError(f"{params.command} exited with {what}.") from error
