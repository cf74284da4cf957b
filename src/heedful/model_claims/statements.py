"""What a formula about a model means: letters, places, and margins.

    alpha(l, h)[t, s]    weight that the token at t gives to the one at s, in head h of layer l
    logit(v)[t]          logit of token v after the token at t; prob(v)[t] its probability
    loss[t], loss        −log of the probability of the token at t; the mean over a text
    changed_loss         the mean loss with what `intervene` changes inside the model
    residual_norm(l)[t]  length of the residual stream after l layers (0: before the first)
    key_norm(l, h)[t]    length of the key; query_norm(l, h)[t] of the query

Layers, heads and places count from 1, as everywhere in the language; n is the number of tokens.
An index that no clause binds stands for all its values. A statement speaks only of places that
exist: `alpha(1, 1)[t, t-1]` says nothing about the first token. What lies behind the query has
weight 0.

A statement becomes a margin: a number for each text that is below 0 where the statement fails.

The model is a run, a folder, a GGUF or llama2.c file, or a published name.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from heedful.claims.language.tree import (
    Binary,
    Call,
    Compare,
    Entry,
    Expression,
    ForAll,
    Logic,
    Name,
    Number,
    Unary,
    bound_names,
    children,
    free_names,
    looks_like_an_index,
    walk,
)
from heedful.claims.sheet.claim import CHANGED_LOSS
from heedful.errors import InputError
from heedful.model import Decoder, Intervention, open_checkpoint
from heedful.model.trace import Trace
from heedful.tokenization import Tokenizer
from heedful.training import trained_decoder
from heedful.training.folder import RunFolder

# The model -----------------------------------------------------------------------------------


class NamedModel(NamedTuple):
    """A decoder in float64, with its tokenizer."""

    name: str
    decoder: Decoder
    tokenizer: Tokenizer | None

    @property
    def begin(self) -> int | None:
        """The id with which every text begins, as the tokenizer arranges it."""
        return None if self.tokenizer is None else self.tokenizer.begin

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text as the model reads them: behind the opening mark."""
        if self.tokenizer is None:
            raise InputError(
                self.name, "has no tokenizer", expected="a model that brings one, to read texts"
            )
        return self.tokenizer.encode_opened(text)


@lru_cache(maxsize=4)
def open_model(name: str) -> NamedModel:
    """Open a model in float64: weights stored in fewer bits are widened without loss."""
    run = RunFolder(Path(name))
    if run.exists and run.checkpoints.is_dir() and not (run.path / "model").is_dir():
        return NamedModel(name, trained_decoder(Path(name)).double().eval(), None)
    checkpoint = open_checkpoint(name)
    return NamedModel(name, checkpoint.decoder().double().eval(), checkpoint.tokenizer)


# What a formula means ------------------------------------------------------------------------

Env = Mapping[str, int]
"""The values of indices."""
MOST_INSTANCES = 50_000
"""Statements about single places that one formula may stand for."""


class NoSuchPlaceError(Exception):
    """A formula speaks of a place that a text does not have."""


class Atom(NamedTuple):
    """A letter with all its indices: alpha(1, 3)[4, 2] is ("alpha", (1, 3), (4, 2))."""

    letter: str
    arguments: tuple[int, ...]
    places: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Meaning:
    """What the names of a formula stand for, apart from the text."""

    decoder: Decoder
    symbols: Mapping[str, Fraction] = field(default_factory=dict)
    """Numbers and token ids that the sheet names."""
    open_name: str | None = None
    """The number that is asked for."""
    tolerance: float = 0.05
    """What ≈ means when no `within` is written."""
    interventions: tuple[Intervention, ...] = ()
    """What `changed_loss` is measured with."""

    def extent(self, name: str, tree: Expression, length: int) -> range:
        """Return the values of an index: layers, heads, or places."""
        for node in walk(tree):
            if isinstance(node, Call) and node.function in _ARGUMENTS:
                for argument, limit in zip(node.arguments, _ARGUMENTS[node.function], strict=False):
                    if isinstance(argument, Name) and argument.text == name:
                        config = self.decoder.config
                        return range(
                            1,
                            {
                                "layer": config.layers,
                                "head": config.attention.heads,
                                "token": config.vocabulary - 1,
                            }[limit]
                            + 1,
                        )
        return range(1, length + 1)

    def indices(self, tree: Expression) -> list[str]:
        """Return the free names of a formula that must be indices."""
        known = {"n", "T", "loss", CHANGED_LOSS, "pi", "e", *self.symbols, self.open_name}
        free = sorted(free_names(tree) - known)
        for name in free:
            if not looks_like_an_index(name) and name != "h":
                place = next(x for x in walk(tree) if isinstance(x, Name) and x.text == name)
                raise place.error(
                    f"{name} is not known here",
                    expected="a letter of the model (alpha, logit, prob, loss, residual_norm, "
                    "key_norm, query_norm), a place such as t or s, or a name under `where`",
                )
        return free


_ARGUMENTS = {
    "alpha": ("layer", "head"),
    "key_norm": ("layer", "head"),
    "query_norm": ("layer", "head"),
    "residual_norm": ("layer",),
    "logit": ("token",),
    "prob": ("token",),
}


def whole(node: Expression, env: Env, meaning: Meaning, length: int) -> int:
    """Return the value of an index or argument, which must be a whole number."""
    number = rational_value(node, env, meaning, length)
    if number is None or number.denominator != 1:
        raise node.error("an index must be a whole number that does not depend on the text")
    return int(number)


def rational_value(node: Expression, env: Env, meaning: Meaning, length: int) -> Fraction | None:
    """Return the value of an expression without letters of the model; None for any other."""
    match node:
        case Number(number):
            return number
        case Name(text):
            if text in env:
                return Fraction(env[text])
            if text in ("n", "T"):
                return Fraction(length)
            return meaning.symbols.get(text)
        case Unary("-", operand):
            inside = rational_value(operand, env, meaning, length)
            return None if inside is None else -inside
        case Binary(operator, left, right):
            x = rational_value(left, env, meaning, length)
            y = rational_value(right, env, meaning, length)
            if x is None or y is None or (operator == "/" and y == 0):
                return None
            if operator == "^":
                small = y.denominator == 1 and abs(y) <= 64 and (x != 0 or y >= 0)
                return Fraction(x ** int(y)) if small else None
            return {"+": x + y, "-": x - y, "*": x * y}.get(operator) if operator != "/" else x / y
    return None


def atom_of(node: Expression, env: Env, meaning: Meaning, length: int) -> Atom | None:
    """Return the letter that a node is, with its indices; None where it is none."""
    if isinstance(node, Name) and node.text in ("loss", CHANGED_LOSS):
        if length < 2:
            raise NoSuchPlaceError  # nothing is predicted
        return Atom("mean loss" if node.text == "loss" else CHANGED_LOSS, (length,), ())
    if not isinstance(node, Entry):
        return None
    base, arguments = node.base, tuple[int, ...]()
    if isinstance(base, Name) and base.text == "loss":
        letter, expected = "loss", 1
    elif isinstance(base, Call) and base.function in _ARGUMENTS:
        letter = base.function
        arguments = tuple(whole(x, env, meaning, length) for x in base.arguments)
        expected = 2 if letter == "alpha" else 1
        _check_arguments(base, arguments, meaning.decoder)
    else:
        return None
    if len(node.indices) != expected:
        raise node.error(
            f"{letter} has {len(node.indices)} places",
            expected="alpha(1, 1)[t, s] has two, the others one: logit(5)[t]",
        )
    places = tuple(whole(x, env, meaning, length) for x in node.indices)
    first = 2 if letter == "loss" else 1
    if not all(first <= place <= length for place in places):
        raise NoSuchPlaceError
    return Atom(letter, arguments, places)


def atoms(node: Expression, env: Env, meaning: Meaning, length: int) -> Iterator[Atom]:
    """Yield the letters that a statement speaks of, those inside of sums too."""
    names = bound_names(node)
    if names:
        for inner in choices(names, node, dict(env), meaning, length):
            for part in children(node):
                yield from atoms(part, inner, meaning, length)
        return
    with suppress(NoSuchPlaceError):
        atom = atom_of(node, env, meaning, length)
        if atom is not None:
            yield atom
            return
        for part in children(node):
            yield from atoms(part, env, meaning, length)


def _check_arguments(node: Call, arguments: tuple[int, ...], decoder: Decoder) -> None:
    config = decoder.config
    limits = {
        "layer": (0 if node.function == "residual_norm" else 1, config.layers),
        "head": (1, config.attention.heads),
        "token": (0, config.vocabulary - 1),
    }
    for number, kind in zip(arguments, _ARGUMENTS[node.function], strict=True):
        low, high = limits[kind]
        if not low <= number <= high:
            raise node.error(
                f"there is no {kind} {number} in this model", expected=f"{low} to {high}"
            )


class Instance(NamedTuple):
    """A statement about definite places, in texts of a definite length."""

    statement: Expression
    env: dict[str, int]
    length: int


def instances(tree: Expression, meaning: Meaning, length: int) -> list[Instance]:
    """Return the statements that must all hold in a text of this many tokens."""
    free = meaning.indices(tree)
    whole_tree: Expression = ForAll(tuple(free), None, tree) if free else tree
    found: list[Instance] = []
    for one in _expanded(whole_tree, {}, meaning, length):
        found.append(one)
        if len(found) > MOST_INSTANCES:
            raise tree.error(
                f"this stands for more than {MOST_INSTANCES:,} statements",
                hint="use fewer indices, or shorter texts",
            )
    return found


def _expanded(
    tree: Expression, env: dict[str, int], meaning: Meaning, length: int
) -> Iterator[Instance]:
    if isinstance(tree, Logic) and tree.operator == "and":
        yield from _expanded(tree.left, env, meaning, length)
        yield from _expanded(tree.right, env, meaning, length)
    elif isinstance(tree, ForAll):
        for inner in choices(tree.indices, tree, env, meaning, length):
            holds = None
            if tree.condition is not None:
                holds = plain_truth(tree.condition, inner, meaning, length)
                if holds is False:
                    continue
            body = tree.body
            if tree.condition is not None and holds is None:
                body = Logic("implies", tree.condition, body)
            yield from _expanded(body, inner, meaning, length)
    elif _exists(tree, env, meaning, length):
        yield Instance(tree, env, length)


def choices(
    names: tuple[str, ...], tree: Expression, env: dict[str, int], meaning: Meaning, length: int
) -> Iterator[dict[str, int]]:
    """Yield every way to give some indices a value."""
    if not names:
        yield env
        return
    for number in meaning.extent(names[0], tree, length):
        yield from choices(names[1:], tree, {**env, names[0]: number}, meaning, length)


def plain_truth(node: Expression, env: Env, meaning: Meaning, length: int) -> bool | None:
    """Tell whether a condition on indices holds; None where it speaks of the model."""
    if isinstance(node, Compare):
        x = rational_value(node.left, env, meaning, length)
        y = rational_value(node.right, env, meaning, length)
        if x is None or y is None or node.operator == "~":
            return None
        return {
            "<": x < y, "<=": x <= y, ">": x > y, ">=": x >= y, "=": x == y, "!=": x != y,
        }[node.operator]  # fmt: skip
    if isinstance(node, Logic):
        one = plain_truth(node.left, env, meaning, length)
        two = plain_truth(node.right, env, meaning, length)
        if one is None or two is None:
            return None
        return {"and": one and two, "or": one or two, "implies": not one or two}[node.operator]
    if isinstance(node, Unary) and node.operator == "not":
        inside = plain_truth(node.operand, env, meaning, length)
        return None if inside is None else not inside
    return None


def in_sum(node: Call, env: Env, meaning: Meaning, length: int) -> bool:
    """Tell whether a sum has a term for these indices."""
    over = node.arguments[1]
    if isinstance(over, Name):
        return True
    truth = plain_truth(over, env, meaning, length)
    if truth is None:
        raise over.error(
            f"the condition of {node.function} speaks of more than indices",
            expected="a condition such as s != t",
        )
    return truth


def _exists(tree: Expression, env: Env, meaning: Meaning, length: int) -> bool:
    """Tell whether all places that a statement speaks of exist.

    A sum runs over the places that exist. It has no meaning where none of its terms exists
    (`sum(alpha(1, h)[t, t-1], h)` at the first token), nor has the greatest of no terms.
    """
    if bound_names(tree):
        return isinstance(tree, ForAll) or _has_terms(tree, env, meaning, length)
    try:
        if atom_of(tree, env, meaning, length) is not None:
            return True
    except NoSuchPlaceError:
        return False
    return all(_exists(part, env, meaning, length) for part in children(tree))


def _has_terms(node: Expression, env: Env, meaning: Meaning, length: int) -> bool:
    assert isinstance(node, Call)
    named = [
        inner
        for inner in choices(bound_names(node), node, dict(env), meaning, length)
        if in_sum(node, inner, meaning, length)
    ]
    if any(_exists(node.arguments[0], inner, meaning, length) for inner in named):
        return True
    return not named and node.function in _EMPTY


class TextValues:
    """The letters of a model on a batch of texts of one length."""

    def __init__(self, trace: Trace, tokens: Tensor) -> None:
        self.trace, self.tokens = trace, tokens
        self.length = tokens.shape[1]
        self._log_probabilities: Tensor | None = None

    def of(self, atom: Atom) -> Tensor:
        """Return the letter for each text."""
        letter, arguments, places = atom
        at = [place - 1 for place in places]
        if letter == "alpha":
            weights = self.trace.layers[arguments[0] - 1].weights
            return weights[:, arguments[1] - 1, at[0], at[1]]
        if letter == "logit":
            return self.trace.logits[:, at[0], arguments[0]].double()
        if letter == "prob":
            return self.log_probabilities[:, at[0], arguments[0]].exp()
        if letter in ("loss", "mean loss"):
            losses = -self.log_probabilities[:, :-1].gather(-1, self.tokens[:, 1:, None])[..., 0]
            return losses[:, at[0] - 1] if places else losses.mean(1)
        if letter == "residual_norm":
            after = arguments[0]
            stream = self.trace.layers[after - 1].after if after else self.trace.embedded
            return _length(stream[:, at[0]])
        layer = self.trace.layers[arguments[0] - 1]
        vectors = layer.keys if letter == "key_norm" else layer.queries
        head = (arguments[1] - 1) * vectors.shape[1] // layer.queries.shape[1]
        return _length(vectors[:, head, at[0]])

    @property
    def log_probabilities(self) -> Tensor:
        """Of every next token, in float64."""
        if self._log_probabilities is None:
            self._log_probabilities = self.trace.logits.double().log_softmax(-1)
        return self._log_probabilities


def _length(vectors: Tensor) -> Tensor:
    length: Tensor = torch.linalg.vector_norm(vectors.double(), dim=-1)
    return length


class TextEvaluator:
    """Formulas on a batch of texts."""

    def __init__(self, meaning: Meaning, values: TextValues) -> None:
        self.meaning, self.values = meaning, values

    def margin(self, one: Instance) -> Tensor:
        """Return by how much a statement holds in each text; below 0 it fails."""
        return self._margin(one.statement, one.env)

    def number(self, node: Expression, env: Env) -> Tensor:
        """Return the value of an expression in each text."""
        length = self.values.length
        plain = rational_value(node, env, self.meaning, length)
        if plain is not None:
            return self._full(float(plain))
        atom = atom_of(node, env, self.meaning, length)
        if atom is not None and atom.letter == CHANGED_LOSS:
            return self._changed_loss(node)
        if atom is not None:
            return self.values.of(atom)
        match node:
            case Name("pi"):
                return self._full(math.pi)
            case Unary("-", operand):
                return -self.number(operand, env)
            case Binary(operator, left, right):
                x, y = self.number(left, env), self.number(right, env)
                if operator == "^":
                    return x**y
                return {"+": x + y, "-": x - y, "*": x * y, "/": x / y}[operator]
            case Call():
                return self._call(node, env)
        raise node.error("this has no meaning for a model", expected=LETTERS)

    def _changed_loss(self, node: Expression) -> Tensor:
        if not self.meaning.interventions:
            raise node.error(
                "nothing is changed inside the model",
                expected='the claim must say what: intervene = { do = "ablate", at = "2.3" }',
            )
        decoder, tokens = self.meaning.decoder, self.values.tokens
        with torch.no_grad(), decoder.intervene(*self.meaning.interventions):
            trace = decoder.trace(tokens)
        return TextValues(trace, tokens).of(Atom("mean loss", (self.values.length,), ()))

    def _call(self, node: Call, env: Env) -> Tensor:
        names = bound_names(node)
        if names:
            terms = []
            for inner in choices(names, node, dict(env), self.meaning, self.values.length):
                if not in_sum(node, inner, self.meaning, self.values.length):
                    continue
                if _exists(node.arguments[0], inner, self.meaning, self.values.length):
                    terms.append(self.number(node.arguments[0], inner))
            return _fold(node, terms, self._full(_EMPTY.get(node.function, 0.0)))
        arguments = [self.number(argument, env) for argument in node.arguments]
        if node.function in ("max", "min") and len(arguments) == 2:
            return (
                torch.maximum(*arguments) if node.function == "max" else torch.minimum(*arguments)
            )
        simple = {"exp": torch.exp, "log": torch.log, "sqrt": torch.sqrt, "abs": torch.abs}
        if node.function in simple and len(arguments) == 1:
            return simple[node.function](arguments[0])
        raise node.error(f"{node.function} has no meaning for a model", expected=LETTERS)

    def _margin(self, node: Expression, env: Env) -> Tensor:
        match node:
            case Compare(operator, left, right, within):
                gap = self.number(left, env) - self.number(right, env)
                if operator in (">", ">="):
                    return gap
                if operator in ("<", "<="):
                    return -gap
                if operator == "!=":
                    return gap.abs()
                if within is not None:
                    return self.number(within, env) - gap.abs()
                return (self.meaning.tolerance if operator == "~" else 1e-9) - gap.abs()
            case Logic("and", left, right):
                return torch.minimum(self._margin(left, env), self._margin(right, env))
            case Logic("or", left, right):
                return torch.maximum(self._margin(left, env), self._margin(right, env))
            case Logic("implies", left, right):
                return torch.maximum(-self._margin(left, env), self._margin(right, env))
            case Unary("not", operand):
                return -self._margin(operand, env)
            case ForAll():
                inner = _expanded(node, dict(env), self.meaning, self.values.length)
                margins = [self._margin(one.statement, one.env) for one in inner]
                return torch.stack(margins).amin(0) if margins else self._full(math.inf)
        raise node.error("this is no statement about a model", expected=LETTERS)

    def _full(self, number: float) -> Tensor:
        return torch.full((len(self.values.tokens),), number, dtype=torch.float64)


LETTERS = (
    "alpha(l, h)[t, s], logit(v)[t], prob(v)[t], loss, residual_norm(l)[t], key_norm(l, h)[t], "
    "query_norm(l, h)[t], joined by + - * / ^, sum, max, min, exp, log, sqrt, abs"
)


_EMPTY = {"sum": 0.0, "prod": 1.0}
"""Folds that have a value without terms."""


def _fold(node: Call, terms: list[Tensor], nothing: Tensor) -> Tensor:
    if not terms:
        return nothing
    stacked = torch.stack(terms)
    folds = {
        "sum": stacked.sum(0), "max": stacked.amax(0), "min": stacked.amin(0),
        "prod": stacked.prod(0), "mean": stacked.mean(0),
    }  # fmt: skip
    if node.function not in folds:
        raise node.error(f"{node.function} has no meaning for a model", expected=LETTERS)
    return folds[node.function]


class LinearForm(NamedTuple):
    """Σ c · letter + a constant."""

    terms: dict[Atom, Fraction]
    constant: Fraction

    def scaled(self, factor: Fraction) -> LinearForm:
        """Return the form times a number."""
        return LinearForm({a: c * factor for a, c in self.terms.items()}, self.constant * factor)

    def plus(self, other: LinearForm) -> LinearForm:
        """Return the sum of two forms."""
        terms = dict(self.terms)
        for atom, c in other.terms.items():
            terms[atom] = terms.get(atom, Fraction(0)) + c
        return LinearForm({a: c for a, c in terms.items() if c}, self.constant + other.constant)


def linear_form(node: Expression, env: Env, meaning: Meaning, length: int) -> LinearForm | None:
    """Return an expression as a linear form of letters; None where it is none."""
    plain = rational_value(node, env, meaning, length)
    if plain is not None:
        return LinearForm({}, plain)
    if isinstance(node, Name) and node.text == meaning.open_name:
        return LinearForm({Atom("open number", (), ()): Fraction(1)}, Fraction(0))
    atom = atom_of(node, env, meaning, length)
    if atom is not None:
        if atom.letter == "alpha" and atom.places[1] > atom.places[0]:
            return LinearForm({}, Fraction(0))  # what lies behind the query is not seen
        return LinearForm({atom: Fraction(1)}, Fraction(0))
    match node:
        case Unary("-", operand):
            inside = linear_form(operand, env, meaning, length)
            return None if inside is None else inside.scaled(Fraction(-1))
        case Binary("+" | "-" | "*" | "/"):
            return _linear_binary(node, env, meaning, length)
        case Call("sum", (body, _)) if bound_names(node):
            total = LinearForm({}, Fraction(0))
            for inner in choices(bound_names(node), node, dict(env), meaning, length):
                if not in_sum(node, inner, meaning, length):
                    continue
                if not _exists(body, inner, meaning, length):
                    continue
                part = linear_form(body, inner, meaning, length)
                if part is None:
                    return None
                total = total.plus(part)
            return total
    return None


def _linear_binary(node: Binary, env: Env, meaning: Meaning, length: int) -> LinearForm | None:
    x = linear_form(node.left, env, meaning, length)
    y = linear_form(node.right, env, meaning, length)
    if x is None or y is None:
        return None
    if node.operator in "+-":
        return x.plus(y.scaled(Fraction(1 if node.operator == "+" else -1)))
    if node.operator == "*" and not (x.terms and y.terms):
        return y.scaled(x.constant) if not x.terms else x.scaled(y.constant)
    if node.operator == "/" and not y.terms and y.constant:
        return x.scaled(1 / y.constant)
    return None
