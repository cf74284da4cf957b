"""The check of axes and types at run time, at a third of its price.

`--jaxtyping-packages` puts `jaxtyping.jaxtyped` around every function of the rooms named there. It
binds the arguments of each call by hand and checks them twice: once before the function runs, and
once more with what it returned. That was a third of the time of the tests about models. Here the
type checker goes around the function itself, so that every argument and every result is checked
once; and the axes get a scope of their own only where a signature names some.

Whether arrays fit a signature depends on their types, shapes and numbers alone, and a model is
called a thousand times with the same ones. So what has passed once is not checked again: a call is,
as soon as anything about the form of its arguments or of its result is new.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import threading
import types
from collections.abc import Callable, Collection, Hashable, Iterator
from typing import Any, get_args, get_type_hints

import beartype
import jaxtyping

jaxtyped = jaxtyping.jaxtyped
"""The decorator as jaxtyping has it."""
_beartype: Any = beartype.beartype(conf=beartype.BeartypeConf(violation_type=TypeError))
"""A wrong type is a TypeError, as jaxtyping's own decorator has it."""


def checked(thing: Any = None, *, typechecker: Callable[[Any], Any]) -> Any:
    """Return a function, method or dataclass that checks what it is given and what it gives."""
    if thing is None:
        return functools.partial(checked, typechecker=typechecker)
    again = functools.partial(checked, typechecker=typechecker)
    if inspect.isclass(thing):
        if dataclasses.is_dataclass(thing) and "__init__" in vars(thing):
            thing.__init__ = again(thing.__init__)
        return thing
    if isinstance(thing, classmethod | staticmethod):
        return type(thing)(again(thing.__func__))
    if isinstance(thing, property):
        return property(*(one and again(one) for one in (thing.fget, thing.fset, thing.fdel)))
    return _checked_function(thing, typechecker)


def install() -> None:
    """Let the modules that are imported from now on be checked in this way."""
    jaxtyping.jaxtyped = checked


def _checked_function(function: Any, typechecker: Callable[[Any], Any]) -> Any:
    if inspect.isgeneratorfunction(function) or inspect.iscoroutinefunction(function):
        return jaxtyped(function, typechecker=typechecker)  # their arguments are read later
    known = {name: _read(hint, function) for name, hint in function.__annotations__.items()}
    function.__annotations__ = known
    inner = _beartype(function)
    if not any(map(_names_axes, known.values())):
        return inner
    answered = _beartype(_answer(function))
    passed: dict[Hashable, set[Hashable]] = {}

    @functools.wraps(function)
    def within(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        form = _form((args, *kwargs.items()))
        results = passed.get(form)
        if results is None:
            with jaxtyped("context"):
                result = inner(*args, **kwargs)
        else:
            result = function(*args, **kwargs)
            if _form(result) in results:
                return result
            _computed.result = result
            with jaxtyped("context"):
                answered(*args, **kwargs)
        if form is not None and (found := _form(result)) is not None:
            passed.setdefault(form, set()).add(found)
        return result

    return within


_computed = threading.local()
"""The result that is about to be checked, in each thread."""


def _answer(function: Any) -> Any:
    """Return a function with the signature of another, which returns what was computed before."""

    @functools.wraps(function)
    def answer(*args: Any, **kwargs: Any) -> Any:
        return _computed.__dict__.pop("result")

    return answer


def _form(thing: Any) -> Hashable | None:
    """Return all that a check of axes looks at, or None where it may look further."""
    kind = type(thing)
    if hasattr(thing, "dtype"):  # an array of whatever library
        return kind, getattr(thing, "shape", None), thing.dtype
    if thing is None or kind is str or kind is bool:
        return kind, thing  # a Literal asks for the value
    if isinstance(thing, tuple):
        forms = tuple(map(_form, thing))
        return None if None in forms else (kind, forms)
    if isinstance(thing, Collection | Iterator):
        return None
    return (kind,)


def _read(hint: Any, function: Any) -> Any:
    """Return what an annotation stands for; anything, where one of its names is not there yet."""
    try:
        named = types.SimpleNamespace(__annotations__={"hint": hint})
        return get_type_hints(named, function.__globals__, include_extras=True)["hint"]
    except NameError:
        return Any


def _names_axes(hint: Any) -> bool:
    if isinstance(hint, list | tuple):
        return any(map(_names_axes, hint))
    if inspect.isclass(hint) and issubclass(hint, jaxtyping.AbstractArray):
        return True
    return any(map(_names_axes, get_args(hint)))
