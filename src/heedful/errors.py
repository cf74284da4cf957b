"""The one error tree.

    HeedfulError                 everything that crosses the package's border      exit
    ├── InputError               what you gave cannot be used                       2
    │   ├── FormulaError         a formula or sheet, with its line and column       2
    │   ├── ConfigError          a setting that contradicts itself or another       2
    │   └── MissingPartError     an optional part is not installed                  2
    └── RunError                 the work itself failed                             3

Every message is one line: `where: what is wrong (value found); what was expected; a hint`.
"""

from __future__ import annotations

from typing import Self


class HeedfulError(Exception):
    """Base of every error this package raises on purpose."""

    exit_code = 3

    def __init__(self, where: str, problem: str, *, expected: str = "", hint: str = "") -> None:
        self.where = where
        self.problem = problem
        self.expected = expected
        self.hint = hint
        parts = [part for part in (problem, expected, hint) if part]
        super().__init__(f"{where}: " + "; ".join(parts))

    def at(self, where: str) -> Self:
        """Return the same error at another place, such as a flag or a line of a file."""
        return type(self)(where, self.problem, expected=self.expected, hint=self.hint)

    def __reduce__(self) -> tuple[object, ...]:
        # Errors travel between worker processes; the default would pass only the message.
        return (_rebuild, (type(self), self.__dict__.copy()))


class InputError(HeedfulError):
    """What was given cannot be used; nothing has been written."""

    exit_code = 2


class FormulaError(InputError):
    """A formula or a claim sheet that cannot be read; knows its line and column.

    An error about a formula also knows the `field` of the claim in which the formula stands,
    such as ("expect", 0), so that the sheet can say the line.
    """

    def __init__(
        self,
        where: str,
        problem: str,
        *,
        expected: str = "",
        hint: str = "",
        line: int | None = None,
        column: int | None = None,
        field: tuple[str | int, ...] = (),
    ) -> None:
        self.field = field
        self.line = line
        self.column = column
        place = where if line is None else f"{where}:{line}"
        place = place if column is None else f"{place}:{column}"
        super().__init__(place, problem, expected=expected, hint=hint)


class ConfigError(InputError):
    """A setting that contradicts itself or another one."""


class MissingPartError(InputError):
    """An optional part of Heedful is not installed."""

    @classmethod
    def of(cls, where: str, package: str, extra: str) -> MissingPartError:
        """Name the missing package and the command that brings it."""
        return cls(
            where,
            f"this needs the package `{package}`, which is not installed",
            hint=f"install it with: pip install 'heedful[{extra}]'",
        )


class RunError(HeedfulError):
    """The work itself failed: a solver, a training, a disk."""

    exit_code = 3


def _rebuild(kind: type[HeedfulError], state: dict[str, object]) -> HeedfulError:
    error = kind.__new__(kind)
    error.__dict__.update(state)
    parts = [str(state[key]) for key in ("problem", "expected", "hint") if state[key]]
    error.args = (f"{state['where']}: " + "; ".join(parts),)
    return error
