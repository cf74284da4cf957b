"""Settings that are checked at birth: frozen, no unknown names, one clear line when wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from heedful.errors import ConfigError

AnySettings = TypeVar("AnySettings", bound="Settings")


class Settings(BaseModel):
    """Base of every group of settings of a model."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    if not TYPE_CHECKING:  # type checkers see the signature that the fields make

        def __init__(self, **values: Any) -> None:
            try:
                super().__init__(**values)
            except ValidationError as error:
                raise _as_config_error(type(self).__name__, error) from None

    @classmethod
    def of(cls: type[AnySettings], values: Any) -> AnySettings:
        """Return the settings written in a mapping, as JSON and TOML give them."""
        if not isinstance(values, dict) or not all(isinstance(name, str) for name in values):
            raise ConfigError(
                cls.__name__,
                f"is {values!r:.60}",
                expected="a table of names and values was expected",
            )
        return cls(**values)

    def changed(self: AnySettings, **changes: Any) -> AnySettings:
        """Return a copy with some settings replaced, checked again as a whole."""
        return type(self)(**{**dict(self), **changes})


def _as_config_error(name: str, error: ValidationError) -> ConfigError:
    first = error.errors(include_url=False)[0]
    place = ".".join(str(part) for part in first["loc"])
    where = f"{name}.{place}" if place else name
    if first["type"] == "extra_forbidden":
        return ConfigError(where, "is no setting of this model", way_out="check its spelling")
    if first["type"] == "missing":
        return ConfigError(where, "is missing", expected="it has no default")
    problem = f"{first['msg'][:1].lower()}{first['msg'][1:]}"
    return ConfigError(where, f"is {first['input']!r:.60}", expected=problem)
