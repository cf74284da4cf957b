"""The judge of claims about a model: for every text, for one text, or on a corpus.

For every text a statement is taken apart into statements about definite places. One that is
linear in the weights of one first-layer head is decided: proved, or refuted by the text that
attains the extreme, the shortest first. Others are enclosed by boxes; what these cannot prove
is attacked, and a text that breaks it refutes. What neither proves nor breaks is undecided.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from operator import itemgetter
from typing import Any, NamedTuple

import torch
from torch import Tensor

from heedful import __version__
from heedful.claims.language.tree import (
    Compare,
    Expression,
    ForAll,
    Logic,
    Unary,
    bound_names,
    names_in,
    walk,
)
from heedful.claims.sheet.claim import (
    CHANGED_LOSS,
    Claim,
    ParsedFormula,
    Texts,
    field_error,
    read_claim,
    read_texts,
    split_texts,
)
from heedful.claims.verdict import Answer, Counterexample, Decision, Evidence, Verdict, Word
from heedful.errors import InputError
from heedful.model.interventions import Intervention, from_table
from heedful.model.trace import Trace
from heedful.model_claims.attack import Attacker, Margin
from heedful.model_claims.bounds import Prover
from heedful.model_claims.corpus import decide_on_corpus, measured_on_corpus
from heedful.model_claims.first_layer import as_text
from heedful.model_claims.statements import (
    Atom,
    Instance,
    LinearForm,
    Meaning,
    NamedModel,
    NoSuchPlaceError,
    TextEvaluator,
    TextValues,
    atoms,
    instances,
    linear_form,
    open_model,
)

DEFAULT_SECONDS = 60.0
ROUNDING = 1e-9
"""A text breaks a statement if it fails by more than this in float64: the decoder's own rounding
errors are far smaller."""
MOST_STEPS, MOST_SHOWN = 4, 8
"""Heads and queries, and weights of each, that a refutation shows."""
MOST_TIGHT = 3
"""Places at which a proof is tightest, as shown."""
ATTACK_SHARE = 0.3
"""Of the time of a claim, what is left for the search of a breaking text."""
MEANINGLESS = ("keys", "query", "heads", "sequence", "matrices", "covariance", "positions", "let")
"""Fields of other claims that say nothing about a model."""
_THEOREM = "first-layer theorem"
STRENGTHS = ("refuted", "undecided", "supported", "proved")


def judge_model_claim(claim: Claim, *, sheet: str = "", seconds: float | None = None) -> Verdict:
    """Judge one claim about a model."""
    start = time.perf_counter()
    # Processor time, as for every claim: beside another program the same work is done.
    deadline = time.process_time() + (DEFAULT_SECONDS if seconds is None else seconds)
    claim = read_claim(claim)
    model = open_model(str(claim.model))
    judge = _ModelJudge(claim, model, deadline)
    answer = None
    if claim.find is not None:
        word, evidence, counterexample, answer = judge.find()
    else:
        word, evidence, counterexample = judge.decide()
    return Verdict(
        sheet=sheet,
        id=claim.id,
        says=claim.says,
        expects=" and ".join(claim.expect),
        verdict=word,
        evidence=evidence,
        counterexample=counterexample,
        answer=answer,
        seconds=round(time.perf_counter() - start, 4),
        versions={"heedful": __version__, "torch": str(torch.__version__)},
        source=claim.source,
        reading=claim.reading,
        number=claim.number,
    )


class _Statement(NamedTuple):
    """One formula of a claim, and the texts it is about."""

    tree: Expression
    texts: Texts


class _ModelJudge:
    """One claim about one model."""

    def __init__(self, claim: Claim, model: NamedModel, deadline: float) -> None:
        self.claim, self.model, self.deadline = claim, model, deadline
        for name in MEANINGLESS:
            if getattr(claim, name):
                raise field_error(
                    (name,),
                    "says nothing about a model",
                    expected="a claim with a `model` has expect, texts, corpus, given and where",
                )
        self.meaning = Meaning(
            model.decoder,
            {name: self._symbol(name, value) for name, value in claim.where.items()},
            None if claim.find is None else claim.find.partition(" ")[2],
            claim.tolerance,
            self._interventions(),
        )
        self.statements = [
            self._statement(number, text) for number, text in enumerate(claim.expect)
        ]

    def decide(self) -> Decision:
        """Return the weakest of the decisions on all formulas."""
        decisions = []
        for statement in self.statements:
            decisions.append(self._decide(statement))
            if decisions[-1][0] == "refuted":
                break
        return min(decisions, key=lambda decision: STRENGTHS.index(decision[0]))

    def _decide(self, statement: _Statement) -> Decision:
        tree, texts = statement
        if texts.kind == "corpus":
            return decide_on_corpus(
                tree, self.meaning, self.model, self.claim, texts, len(self.statements)
            )
        if texts.kind == "one":
            return self._for_one_text(tree, self.model.encode(texts.text))
        return self._for_every_text(tree, texts)

    # ---- reading ----

    def _statement(self, number: int, text: str) -> _Statement:
        assert isinstance(text, ParsedFormula)
        _, texts = split_texts(text)
        if texts is None and self.claim.texts is not None:
            texts = read_texts(self.claim.texts)
        if texts is None:
            raise field_error(
                ("expect", number),
                "does not say which texts it is about",
                expected='texts = "every text up to 16 tokens", or the same words after the '
                "formula",
                hint='there are also "the corpus, with 95 %" and \'the text "…"\'',
            )
        context = self.model.decoder.config.context
        if texts.kind == "every" and texts.length > context:
            raise field_error(
                ("expect", number),
                f"is about texts of up to {texts.length} tokens",
                expected=f"at most {context}, the context of this model",
            )
        tree = text.tree
        if CHANGED_LOSS in names_in(tree) and texts.kind != "corpus":
            raise field_error(
                ("expect", number),
                f"speaks of {CHANGED_LOSS} for {texts}",
                expected="what an intervention does is measured on a corpus",
            )
        given = self.claim.given
        if given is not None:
            assert isinstance(given, ParsedFormula)
            tree = Logic("implies", given.tree, tree)
        return _Statement(tree, texts)

    def _interventions(self) -> tuple[Intervention, ...]:
        if not self.claim.intervene:
            return ()
        one = from_table(self.claim.intervene, self.model.encode, "intervene")
        one.check(self.model.decoder.config)
        return (one,)

    def _symbol(self, name: str, value: Any) -> Fraction:
        if isinstance(value, int | float):
            return Fraction(str(value))
        if isinstance(value, str) and value.startswith("token "):
            written = value.removeprefix("token ").strip()
            text = written[1:-1] if len(written) > 1 and written[0] in "\"'" else written
            if self.model.tokenizer is not None:
                number = self.model.tokenizer.id_of(text)
                ids = [number] if number is not None else self.model.tokenizer.encode(text)
                if len(ids) == 1 and ids[0] is not None:
                    return Fraction(ids[0])
                problem = f"{text!r} is {len(ids)} tokens"
            else:
                problem = "this model has no tokenizer"
            raise field_error(("where", name), problem, expected="one token, or its number")
        raise field_error(
            ("where", name),
            f"is {value!r}",
            expected="a number, or 'token \"word\"'",
        )

    # ---- for one text ----

    def _for_one_text(self, tree: Expression, tokens: list[int]) -> Decision:
        if not tokens:
            raise InputError("texts", "the text is empty", expected="at least one token")
        prover = Prover(self.model.decoder, len(tokens), tokens=tokens)
        wanted = instances(tree, self.meaning, len(tokens))
        unsure = None
        for one in wanted:
            truth = self._enclosed(one, prover)
            if truth is False:
                return self._refuted(one, tokens, "interval arithmetic", len(wanted))
            unsure = one if truth is None and unsure is None else unsure
        if unsure is None:
            statement = (
                f"Every number in {_count(len(wanted), 'statement')} about this text of "
                f"{len(tokens)} tokens was enclosed, with all rounding errors, by an interval that "
                "decides it."
            )
            return "proved", Evidence(method="interval arithmetic", statement=statement), None
        margin = float(self._margins(unsure, torch.tensor([tokens]))[0])
        if margin < -ROUNDING:
            return self._refuted(unsure, tokens, "evaluation", len(wanted))
        statement = f"In float64 it holds by {margin:.3g}; the intervals were too wide to prove it."
        word: Word = "supported" if margin > ROUNDING else "undecided"
        return word, Evidence(method="evaluation", statement=statement, draws=1), None

    # ---- for every text ----

    def _for_every_text(self, tree: Expression, texts: Texts) -> Decision:
        proof_ends = self.deadline - ATTACK_SHARE * max(self.deadline - time.process_time(), 0.0)
        prover = Prover(
            self.model.decoder,
            texts.length,
            begin=self.model.begin,
            out_of_time=lambda: time.process_time() > proof_ends,
        )
        wanted = self._instances(tree, texts)
        if not wanted:
            statement = f"No text of up to {texts.length} tokens has the places it speaks of."
            return "proved", Evidence(method="no such case", statement=statement), None
        open_ones: list[Instance] = []
        boxes = False
        for number, one in enumerate(wanted):
            if time.process_time() > proof_ends:
                open_ones += wanted[number:]
                break
            try:
                truth, tokens, boxed = self._for_all(one, prover)
            except InputError:  # bounds that would take too long: only the attack is left
                truth, tokens, boxed = None, None, True
            boxes = boxes or boxed
            if truth is False and tokens is not None:
                counts = self._counts(tree)
                filled = list(tokens)
                if counts:  # the text must have as many tokens as the formula says
                    filled += [tokens[-1]] * (one.length - len(tokens))
                method = "interval arithmetic" if boxed else _THEOREM
                shortest = not open_ones and not counts
                return self._refuted(one, filled, method, len(wanted), shortest=shortest)
            if truth is not True:
                open_ones.append(one)
        if not open_ones:
            return "proved", self._proof(wanted, texts, prover, boxes=boxes), None
        return self._attacked(open_ones, len(wanted))

    def _instances(self, tree: Expression, texts: Texts) -> list[Instance]:
        """Return what must hold, shortest texts first; one length is enough where n is no name."""
        if self._counts(tree):
            lengths: Sequence[int] = range(1, texts.length + 1)
        else:
            lengths = [texts.length]
        found = [one for length in lengths for one in instances(tree, self.meaning, length)]
        return sorted(found, key=lambda one: _last_place(one, self.meaning))

    def _counts(self, tree: Expression) -> bool:
        """Tell whether a formula may depend on the number of tokens: sums run over all of them."""
        if names_in(tree) & {"n", "T", "loss"}:
            return True
        outer = tree
        while isinstance(outer, ForAll):
            outer = outer.body
        return any(bool(bound_names(node)) or isinstance(node, ForAll) for node in walk(outer))

    def _for_all(
        self, one: Instance, prover: Prover
    ) -> tuple[bool | None, tuple[int, ...] | None, bool]:
        """Return whether a statement holds for all texts, a text that breaks it, and whether boxes
        were needed."""
        if isinstance(one.statement, Compare) and self._is_linear(one):
            for form, strict in self._forms(one):
                bounded = prover.least(form)
                exact = bounded.tokens is not None
                if bounded.low > 0 or (bounded.low >= 0 and not strict):
                    continue
                if exact and bounded.attained is not None and bounded.attained < 0:
                    return False, bounded.tokens, False
                greatest = prover.greatest(form)
                if greatest < 0 or (greatest <= 0 and strict):  # it fails in every text
                    return False, self._any_text(_last_place(one, self.meaning)), not exact
                return None, None, not exact
            return True, None, not self._first_layer_only(one)
        return self._enclosed(one, prover), None, True

    def _any_text(self, length: int) -> tuple[int, ...]:
        opening = () if self.model.begin is None else (self.model.begin,)
        return (*opening, *[0] * length)[:length]

    def _forms(self, one: Instance) -> list[tuple[Any, bool]]:
        """Return the linear forms that must not be negative, and whether 0 is too little."""
        compare = one.statement
        assert isinstance(compare, Compare)
        left = linear_form(compare.left, one.env, self.meaning, one.length)
        right = linear_form(compare.right, one.env, self.meaning, one.length)
        if left is None or right is None:
            raise _NotLinearError
        gap = left.plus(right.scaled(Fraction(-1)))
        if compare.operator in (">", ">="):
            return [(gap, compare.operator == ">")]
        if compare.operator in ("<", "<="):
            return [(gap.scaled(Fraction(-1)), compare.operator == "<")]
        if compare.operator in ("~", "="):
            room = Fraction(0)
            if compare.within is not None:
                width = linear_form(compare.within, one.env, self.meaning, one.length)
                if width is None or width.terms:
                    raise _NotLinearError
                room = width.constant
            elif compare.operator == "~":
                room = Fraction(str(self.claim.tolerance))
            slack = type(gap)({}, room)
            return [(slack.plus(gap.scaled(Fraction(-1))), False), (slack.plus(gap), False)]
        raise _NotLinearError

    def _is_linear(self, one: Instance) -> bool:
        try:
            return bool(self._forms(one))
        except _NotLinearError:
            return False

    def _first_layer_only(self, one: Instance) -> bool:
        return all(
            atom.letter == "alpha" and atom.arguments[0] == 1
            for form, _ in self._forms(one)
            for atom in form.terms
        )

    def _enclosed(self, one: Instance, prover: Prover) -> bool | None:
        """Return what intervals say of a statement: true, false or unknown."""
        return self._truth(one.statement, one, prover)

    def _truth(self, node: Expression, one: Instance, prover: Prover) -> bool | None:
        match node:
            case Compare():
                return self._compared(one._replace(statement=node), prover)
            case Logic(operator, left, right):
                x, y = self._truth(left, one, prover), self._truth(right, one, prover)
                if operator == "implies":
                    x, operator = (None if x is None else not x), "or"
                if operator == "and":
                    return False if False in (x, y) else (None if None in (x, y) else True)
                return True if True in (x, y) else (None if None in (x, y) else False)
            case Unary("not", operand):
                inside = self._truth(operand, one, prover)
                return None if inside is None else not inside
        return None

    def _compared(self, one: Instance, prover: Prover) -> bool | None:
        try:
            forms = self._forms(one)
        except _NotLinearError:
            return None
        sure = True
        for form, strict in forms:
            low = prover.least(form).low
            if low > 0 or (low >= 0 and not strict):
                continue
            greatest = prover.greatest(form)
            if greatest < 0 or (greatest <= 0 and strict):
                return False
            sure = False
        return True if sure else None

    # ---- breaking texts ----

    def _attacked(self, open_ones: list[Instance], count: int) -> Decision:
        """Look for a text that breaks what could not be proved."""
        by_length: dict[int, list[Instance]] = {}
        for one in open_ones:
            by_length.setdefault(one.length, []).append(one)
        lengths = sorted(by_length)
        deepest = max(lengths)

        def known(length: int) -> list[Instance]:
            return by_length.get(length, []) if len(lengths) > 1 else by_length[deepest]

        def margin(trace: Trace, rows: Tensor) -> Tensor:
            evaluator = TextEvaluator(self.meaning, TextValues(trace, rows))
            here = known(rows.shape[1])
            return _least_of_all(evaluator, here, rows, [1.0] * len(here))

        attempts = lengths if len(lengths) > 1 else _some_lengths(open_ones, self.meaning, deepest)
        attacker = self._attacker(margin)
        found = attacker.search(attempts, below=-ROUNDING)
        tried, least = found.tried, found.margin
        if least < -ROUNDING:
            tokens = list(found.tokens)
            broken = min(known(len(tokens)), key=lambda one: self._safe_margin(one, tokens))
            return self._refuted(broken, tokens, "search guided by gradients", count)
        whole = all(attacker.can_enumerate(length) for length in lengths)
        proved = f"{count - len(open_ones)} of {_count(count, 'statement')} about single places"
        if whole and least > ROUNDING and not attacker.out_of_time():
            statement = (
                f"{proved} could be proved; the others hold in all {tried:,} texts there are, by "
                f"at least {least:.3g}, as float64 computes them."
            )
            return "supported", self._searched("enumeration", statement, tried), None
        statement = (
            f"{proved} could be proved. The bounds of the others are too wide, and {tried:,} texts "
            f"tried by exchanging tokens broke none (the least margin was {least:.3g})."
        )
        return "undecided", self._searched("search guided by gradients", statement, tried), None

    def _attacker(self, margin: Margin) -> Attacker:
        return Attacker(
            self.model.decoder,
            margin,
            begin=self.model.begin,
            seed=self.claim.seed,
            out_of_time=lambda: time.process_time() > self.deadline,
        )

    def _searched(self, method: str, statement: str, tried: int) -> Evidence:
        return Evidence(method=method, statement=statement, draws=tried, seed=self.claim.seed)

    def _margins(self, one: Instance, rows: Tensor) -> Tensor:
        with torch.no_grad():
            trace = self.model.decoder.trace(rows)
            values = TextValues(trace, rows)
            return TextEvaluator(self.meaning, values).margin(one._replace(length=rows.shape[1]))

    def _safe_margin(self, one: Instance, tokens: list[int]) -> float:
        try:
            return float(self._margins(one, torch.tensor([tokens]))[0])
        except NoSuchPlaceError:
            return float("inf")

    def _refuted(
        self,
        one: Instance,
        tokens: list[int],
        method: str,
        count: int,
        *,
        shortest: bool = False,
    ) -> Decision:
        tokens = self._as_the_tokenizer_would(one, tokens)
        rows = torch.tensor([tokens])
        with torch.no_grad():
            evaluator = TextEvaluator(
                self.meaning, TextValues(self.model.decoder.trace(rows), rows)
            )
            here = one._replace(length=len(tokens))
            margin = float(evaluator.margin(here)[0])
            sides = [float("nan"), float("nan")]
            if isinstance(one.statement, Compare):
                parts = (one.statement.left, one.statement.right)
                sides = [float(evaluator.number(part, one.env)[0]) for part in parts]
        text, produced = as_text(tokens, self.model.tokenizer)
        where = ", ".join(f"{name} = {value}" for name, value in one.env.items())
        said = f"the tokens {tokens}" if text is None else f"the text {text!r}"
        statement = f"For {said} ({len(tokens)} tokens)" + (f" and {where}" if where else "")
        statement += f", the left side is {sides[0]:.6g} and the right side {sides[1]:.6g}"
        strict = isinstance(one.statement, Compare) and one.statement.operator in ("<", ">")
        if margin >= 0:
            equal = strict and sides[0] == sides[1]
            near = "which is not enough" if equal else "too near to tell apart in float64"
            statement += f" ({near})"
        statement += (
            "."
            if produced is not False
            else ("; the tokenizer itself would not make these tokens of that text.")
        )
        counterexample = Counterexample(
            symbols={**one.env, "tokens": tokens, "text": text, "produced": produced},
            left=sides[0],
            right=sides[1],
            gap=-margin,
            statement=statement + (" No shorter text breaks it." if shortest else ""),
        )
        reason = f"Of {_count(count, 'statement')} about single places, this one fails."
        steps = self._read_weights(here, evaluator.values, tokens)
        return "refuted", Evidence(method=method, statement=reason, steps=steps), counterexample

    def _read_weights(
        self, one: Instance, values: TextValues, tokens: list[int]
    ) -> tuple[str, ...]:
        """Return the weights behind a statement about a text, a line for each head and query."""
        queries = dict.fromkeys(
            (*atom.arguments, atom.places[0])
            for atom in atoms(one.statement, one.env, self.meaning, len(tokens))
            if atom.letter == "alpha"
        )
        lines = []
        for layer, head, place in list(queries)[:MOST_STEPS]:
            weights = values.trace.layers[layer - 1].weights[0, head - 1, place - 1, :place]
            largest = weights.topk(min(MOST_SHOWN, place)).indices.sort().values.tolist()
            read = ", ".join(f"{self._token(tokens[s])} {float(weights[s]):.3g}" for s in largest)
            rest = "" if place <= MOST_SHOWN else " (the largest of them)"
            lines.append(
                f"Head {head} of layer {layer}, reading from {self._token(tokens[place - 1])} at "
                f"place {place}{rest}: {read}."
            )
        return tuple(lines)

    def _token(self, number: int) -> str:
        tokenizer = self.model.tokenizer
        if tokenizer is None or number >= tokenizer.size:
            return f"token {number}"
        return repr(tokenizer.decode([number], special=True))

    def _as_the_tokenizer_would(self, one: Instance, tokens: list[int]) -> list[int]:
        """Return tokens that the tokenizer makes of the same text, if these break it as well."""
        text, produced = as_text(tokens, self.model.tokenizer)
        if produced is not False or text is None:
            return tokens
        try:
            again = self.model.encode(text)
        except InputError:
            return tokens
        same = len(again) == len(tokens) and self._safe_margin(one, again) < -ROUNDING
        return again if same else tokens

    def _proof(
        self, wanted: list[Instance], texts: Texts, prover: Prover, *, boxes: bool
    ) -> Evidence:
        vocabulary = self.model.decoder.config.vocabulary
        opening = "" if self.model.begin is None else ", each behind the opening mark,"
        if boxes:
            method = "interval arithmetic"
            how = (
                "boxes around the residual stream of every place and token, carried through all "
                "layers"
            )
        else:
            method = _THEOREM
            how = (
                "in the first layer the other tokens are free once the query's token is fixed, so "
                "the extreme of each place is found by itself"
            )
        statement = (
            f"For all texts of up to {texts.length} of the {vocabulary:,} tokens{opening} "
            f"{_count(len(wanted), 'statement')} about single places hold: {how}; all rounding "
            "errors are included."
        )
        return Evidence(method=method, statement=statement, steps=self._tightest(wanted, prover))

    def _tightest(self, wanted: list[Instance], prover: Prover) -> tuple[str, ...]:
        """Return the statements that hold by least, with the text that attains each."""
        margins = []
        for one in wanted:
            if isinstance(one.statement, Compare) and self._is_linear(one):
                bounded = min(
                    (prover.least(form) for form, _ in self._forms(one)), key=itemgetter(0)
                )
                margins.append((bounded, one.env))
        margins.sort(key=lambda pair: pair[0].low)
        lines = []
        for bounded, env in margins[:MOST_TIGHT]:
            where = ", ".join(f"{name} = {value}" for name, value in env.items())
            said = f"{where}: " if where else ""
            if bounded.tokens is None:
                lines.append(f"{said}it holds by at least {bounded.low:.4g}.")
                continue
            text, _ = as_text(bounded.tokens, self.model.tokenizer)
            named = list(bounded.tokens) if text is None else repr(text)
            lines.append(f"{said}it holds by {bounded.low:.4g} or more, least of all for {named}.")
        return tuple(lines)

    # ---- for which number ----

    def find(self) -> tuple[Any, Evidence, Counterexample | None, Answer]:
        """Return the least or greatest number with which the claim holds."""
        asks = str(self.claim.find)
        limits: list[_Limit] = []
        for tree, texts in self.statements:
            if texts.kind == "corpus":
                ends = measured_on_corpus(tree, self.meaning, self.model, self.claim, texts, asks)
                low, high = ends if asks.startswith("greatest") else (-ends[1], -ends[0])
                limits.append(_Limit(low, high))
                continue
            tokens = self.model.encode(texts.text) if texts.kind == "one" else None
            length = texts.length if tokens is None else len(tokens)
            prover = self._prover(length, tokens)
            wanted = (
                self._instances(tree, texts)
                if tokens is None
                else instances(tree, self.meaning, length)
            )
            found = [(one, self._limit(one, prover, asks)) for one in wanted]
            limits += [limit for _, limit in found]
            # What only boxes bound may be narrowed by a text.
            attained = min((limit.high for limit in limits if limit.tokens), default=math.inf)
            wide = [one for one, limit in found if not limit.tokens and limit.low < attained]
            if tokens is None and wide:
                limits += self._found_by_search(wide, asks)
        return self._answer(asks, limits)

    def _prover(self, length: int, tokens: list[int] | None) -> Prover:
        return Prover(
            self.model.decoder,
            length,
            begin=self.model.begin,
            tokens=tokens,
            out_of_time=lambda: time.process_time() > self.deadline,
        )

    def _allowed(self, one: Instance, asks: str) -> tuple[LinearForm, Fraction]:
        """Return the form of letters that x may not exceed, and the factor of x in the relation.

        For the least x in f <= x it is −f, which −x may not exceed.
        """
        unknown = Atom("open number", (), ())
        try:
            forms = self._forms(one)
        except (_NotLinearError, AssertionError):
            raise one.statement.error(
                "the number asked for must stand in a linear relation",
                expected="such as alpha(1, 1)[t, t-1] >= x",
            ) from None
        (form, _), *more = forms
        slope = form.terms.get(unknown)
        if more or slope is None or (slope < 0) != asks.startswith("greatest"):
            raise one.statement.error(
                f"{asks} is not bounded by this relation",
                expected="greatest x in … >= x, least x in … <= x",
            )
        rest = LinearForm({a: c for a, c in form.terms.items() if a != unknown}, form.constant)
        return rest.scaled(1 / abs(slope)), abs(slope)

    def _limit(self, one: Instance, prover: Prover, asks: str) -> _Limit:
        """Return what one statement allows x (or −x) at most, enclosed, with its text."""
        form, _ = self._allowed(one, asks)
        bounded = prover.least(form)
        if bounded.attained is not None:
            return _Limit(bounded.low, bounded.attained, bounded.tokens)
        return _Limit(bounded.low, prover.greatest(form))

    def _found_by_search(self, wide: list[Instance], asks: str) -> list[_Limit]:
        """Return what a text found by exchanging tokens allows x: enclosed, so it is certain."""
        at_zero = replace(
            self.meaning,
            symbols={**self.meaning.symbols, str(self.meaning.open_name): Fraction(0)},
            open_name=None,
        )
        slopes = [float(self._allowed(one, asks)[1]) for one in wide]

        def margin(trace: Trace, rows: Tensor) -> Tensor:
            evaluator = TextEvaluator(at_zero, TextValues(trace, rows))
            return _least_of_all(evaluator, wide, rows, slopes)

        lengths = sorted({one.length for one in wide})
        if len(lengths) == 1:
            lengths = _some_lengths(wide, self.meaning, lengths[0])
        found = self._attacker(margin).search(lengths, below=-math.inf)
        tokens = list(found.tokens)
        prover, limits = self._prover(len(tokens), tokens), []
        for one in wide:
            here = one._replace(length=len(tokens))
            if one.length != len(tokens) and self._counts(one.statement):
                continue
            try:
                form, _ = self._allowed(here, asks)
            except NoSuchPlaceError:
                continue
            limits.append(_Limit(-math.inf, prover.greatest(form), tuple(tokens)))
        return limits

    def _answer(
        self, asks: str, limits: list[_Limit]
    ) -> tuple[Any, Evidence, Counterexample | None, Answer]:
        if not limits:
            raise InputError("find", "the claim speaks of no place that exists")
        best = min(limits, key=lambda limit: limit.high)
        # What a text allows is an upper bound for all; what is proved must hold for each.
        low = min(limit.low for limit in limits if limit.low > -math.inf)
        high, witness, upper = best.high, best.tokens, asks.startswith("greatest")
        holds, fails = (low, high) if upper else (-low, -high)
        low, high = (low, high) if upper else (-high, -low)
        text = None if witness is None else as_text(list(witness), self.model.tokenizer)[0]
        said = "" if text is None else f" The text {text!r} attains {fails:.9g}."
        statement = f"The {asks} lies between {low:.9g} and {high:.9g}.{said}"
        sure = all(texts.kind != "corpus" for _, texts in self.statements)
        answer = Answer(
            asks=asks,
            low=low,
            high=high,
            holds_with=repr(holds),
            fails_with=None if witness is None else repr(fails),
            certified=sure,
            statement=statement,
        )
        exact = all(limit.tokens for limit in limits)
        evidence = Evidence(
            method=_THEOREM if exact else "interval arithmetic",
            statement=statement,
            numbers={"low": low, "high": high, **({} if witness is None else {"tokens": witness})},
        )
        return ("proved" if sure else "supported"), evidence, None, answer


class _Limit(NamedTuple):
    """What the number asked for may be at most: between two numbers, and the text that says so."""

    low: float
    high: float
    tokens: tuple[int, ...] | None = None


def _least_of_all(
    evaluator: TextEvaluator, known: Sequence[Instance], rows: Tensor, slopes: Sequence[float]
) -> Tensor:
    """Return the least margin of some statements in each text, divided by their slopes."""
    margins = []
    for one, slope in zip(known, slopes, strict=True):
        try:
            margins.append(evaluator.margin(one._replace(length=rows.shape[1])) / slope)
        except NoSuchPlaceError:
            continue
    if not margins:
        return torch.full((len(rows),), torch.inf, dtype=torch.float64)
    return torch.stack(margins).amin(0)


class _NotLinearError(Exception):
    """A relation is not linear in the letters of the model."""


def _last_place(one: Instance, meaning: Meaning) -> int:
    """Return the last place that a statement speaks of; the whole text where that is unclear."""
    if isinstance(one.statement, Compare):
        try:
            left = linear_form(one.statement.left, one.env, meaning, one.length)
            right = linear_form(one.statement.right, one.env, meaning, one.length)
        except NoSuchPlaceError:
            return one.length
        if left is not None and right is not None:
            places = [p for atom in (*left.terms, *right.terms) for p in atom.places]
            return max(places, default=one.length)
    return one.length


def _some_lengths(open_ones: list[Instance], meaning: Meaning, longest: int) -> list[int]:
    """Return lengths of texts to try: those in which some statement speaks of existing places."""
    ends = sorted({_last_place(one, meaning) for one in open_ones})
    return sorted({*ends[:6], ends[len(ends) // 2], longest})


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
