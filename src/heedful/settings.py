"""Settings that are checked at birth: frozen, no unknown names, one clear line when wrong."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from heedful.errors import ConfigError

AnySettings = TypeVar("AnySettings", bound="Settings")


class Settings(BaseModel):
    """Base of every group of settings of a model."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)
    table: ClassVar[str | None] = None
    """What errors call it: its table in a file, "" for the top of one. None: as the class."""

    if not TYPE_CHECKING:  # type checkers see the signature that the fields make

        def __init__(self, **values: Any) -> None:
            try:
                super().__init__(**values)
            except ValidationError as error:
                raise _as_config_error(type(self), error) from None

    @classmethod
    def of(cls: type[AnySettings], values: Any) -> AnySettings:
        """Return the settings written in a mapping, as JSON and TOML give them."""
        if not isinstance(values, dict) or not all(isinstance(name, str) for name in values):
            raise ConfigError(
                cls.table or cls.__name__,
                "is missing" if values is None else f"is {values!r:.60}",
                expected="a table of names and values was expected",
            )
        return cls(**values)

    def changed(self: AnySettings, **changes: Any) -> AnySettings:
        """Return a copy with some settings replaced, checked again as a whole."""
        return type(self)(**{**dict(self), **changes})


def _as_config_error(kind: type[Settings], error: ValidationError) -> ConfigError:
    first = error.errors(include_url=False)[0]
    name = kind.__name__ if kind.table is None else kind.table
    where = ".".join([name, *map(str, first["loc"])]).removeprefix(".")
    if first["type"] == "extra_forbidden":
        problem = "is no setting of this model" if kind.table is None else "is no setting"
        alike = get_close_matches(str(first["loc"][-1]), kind.model_fields, 1)
        hint = f"did you mean {alike[0]}?" if alike else "check its spelling"
        return ConfigError(where, problem, hint=hint)
    if first["type"] == "missing":
        return ConfigError(where, "is missing", expected="it has no default")
    problem = f"{first['msg'][:1].lower()}{first['msg'][1:]}"
    return ConfigError(where, f"is {first['input']!r:.60}", expected=problem)
