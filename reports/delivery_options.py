"""What an operator chooses for the delivery of a report's files: `options_interface.delivery` in the params."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from django.utils.translation import gettext as _
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from reports.recipients import read_recipients
from reports.renderers import FORMATS, RENDERERS
from scheduling.core.text import visible_text

OPTIONS = "options_interface"

EXAMPLE = '{"delivery": {"format": "csv", "recipients": ["ann@example.com"]}}'


def _format(name: str) -> str:
    if name not in RENDERERS:
        raise _refused(_("must be one of %(known)s") % {"known": ", ".join(FORMATS)})
    if problem := RENDERERS[name].missing():
        raise _refused(problem)
    return name


def _refused(text: str) -> PydanticCustomError:
    return PydanticCustomError(OPTIONS, "{text}", {"text": text})


class _Known(BaseModel):
    """A model that names its keys when it refuses an unknown key. The value null means that a key is not given."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _only_known_keys(cls, data: Any) -> Any:
        if isinstance(data, BaseModel):
            return data
        if not isinstance(data, Mapping):
            raise _refused(_("%(name)s is an object such as %(example)s.") % {"name": OPTIONS, "example": EXAMPLE})
        for key in data:
            if key not in cls.model_fields:
                facts = {"key": f'"{visible_text(key, 40)}"', "known": ", ".join(cls.model_fields)}
                raise _refused(_("there is no option %(key)s. Known options: %(known)s") % facts)
        return {key: value for key, value in data.items() if value is not None}


class DeliveryOptions(_Known):
    """How one run delivers its files.

    Attributes:
        instant: always true, because a report is always made within its attempt: the retry policy must see its errors.
        format: the only format in which the files are written; empty for the formats of the controller.
        filename: the name of the files without extension, not yet safe; empty for the controller's name.
        recipients: the addresses that the files are mailed to, without repeats.
        attach: whether the mail has the files as attachments.
    """

    instant: Annotated[bool, AfterValidator(lambda _given: True)] = True
    format: Annotated[str, AfterValidator(_format)] = ""
    filename: Annotated[str, Field(max_length=200)] = ""
    recipients: Annotated[tuple[str, ...], BeforeValidator(read_recipients)] = ()
    attach: bool = True

    def formats(self, own: tuple[str, ...]) -> tuple[str, ...]:
        """The formats of the files. `own` are the formats of the controller."""
        return (self.format,) if self.format else tuple(own)

    def stem(self, own: str, format_: str) -> str:
        """The name of a file of this format, without extension and not yet safe. `own` is the controller's name."""
        chosen = self.filename.strip()
        if chosen.lower().endswith(f".{format_}"):  # the name may be written with its extension
            chosen = chosen[: -len(format_) - 1]
        return chosen or own


NO_OPTIONS = DeliveryOptions()


class OptionsInterface(_Known):
    """The value of the param `options_interface`."""

    delivery: DeliveryOptions | None = None


class WithOptions(_Known):
    """Params that have only `options_interface`. The errors of this model name the full path of a wrong option."""

    options_interface: OptionsInterface | None = None
