"""Built-in workers. A project can schedule them without writing code."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Annotated, Any

from django.core.management import CommandError, call_command, get_commands, load_command_class
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from scheduling.conf import get_conf
from scheduling.handlers import Run, worker

ARGUMENT_LIMIT = 500
ARGUMENTS_LIMIT = 50

CODE_OPTIONS = ("--pythonpath", "--settings")
"""Every command has these options. They set the place from which code is loaded, and a stored row must not set it."""


def _refuse(code: str, text: str) -> PydanticCustomError:
    # The error is not a ValueError, because pydantic would put "Value error, " before the sentence.
    return PydanticCustomError(code, "{text}", {"text": text})


def _allowed(command: str) -> str:
    allowed = get_conf().commands
    if command not in allowed:
        names = ", ".join(sorted(allowed)) or "none"
        text = f"{command!r} may not be run from here. Allowed: {names}. The setting CRON_COMMANDS says which."
        raise _refuse("command", text)
    if command not in get_commands():
        raise _refuse("command", f"There is no management command {command!r} in this project.")
    return command


def _harmless(argument: str) -> str:
    name = argument.split("=", 1)[0]
    # The parser also accepts abbreviations, such as --set for --settings.
    if len(name) > len("--s") and any(option.startswith(name) for option in CODE_OPTIONS):
        raise _refuse("argument", f"{name} is not accepted: a schedule cannot say where code is read from.")
    if name in {"-h", "--help", "--version"}:
        raise _refuse("argument", f"{name} only prints a text: run it on a command line.")
    return argument


def _choices(schema: dict[str, Any]) -> None:
    """Add the allowed commands to the schema. This function reads the setting, because an import must not read it."""
    schema["enum"] = sorted(get_conf().commands)


class CommandParams(BaseModel):
    """A command and its arguments, as they are typed on a command line."""

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
        """Check the arguments with the command's parser. So a misspelt option is refused when the schedule is saved."""
        parser = _parser(self.command)
        if parser is None:
            return self
        try:
            parsed = parser.parse_args(self.args)
        except CommandError as error:
            text = str(error).removeprefix("Error: ").rstrip(".")
            raise _refuse("arguments", f"{self.command} does not take these arguments: {text}.") from None
        except (Exception, SystemExit):
            return self  # the command parses its arguments in its own way, so only a run can check them
        if getattr(parsed, "settings", None) or getattr(parsed, "pythonpath", None):
            raise _refuse("arguments", "A schedule cannot say where code is read from.")
        return self


def _parser(name: str) -> ArgumentParser | None:
    """The command's own parser; None if only a run can tell whether the arguments fit."""
    app = get_commands()[name]
    try:
        command = load_command_class(app, name) if isinstance(app, str) else app
        parser = command.create_parser("manage.py", name)
    except Exception:
        return None  # the command's code is broken: a run will fail, but the params may be right
    if any(type(action.type).__name__ == "FileType" for action in parser._actions):
        return None  # parsing the arguments would open files, or even empty them
    return parser


# A command needs a fresh child, because it may change logging, signal handlers and globals for the whole process.
@worker("run_command", params=CommandParams, fresh=True, title="Management command")
def run_command(params: CommandParams, run: Run) -> None:
    """Runs one of the management commands that CRON_COMMANDS allows.

    Raises:
        CommandError: the command raised this error, or it exited with a code other than 0.
    """
    run.log.info("manage.py %s", " ".join([params.command, *params.args]))
    try:
        call_command(params.command, *params.args)
    except SystemExit as error:
        if error.code not in (None, 0):
            what = f"code {error.code}" if isinstance(error.code, int) else f"{error.code!r}"
            raise CommandError(f"{params.command} exited with {what}.") from error
