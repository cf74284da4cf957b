"""What each token and each word of a translation owes to the source, by five methods.

The decoder reads `begin source between target`; p_t is the probability that it gives to target
token t. A method scores every source token s for every target token t; scores are not negative. The
methods give different answers:

    attention       α_ts, the mean over the heads that align (see below)
    value norm      α_ts ‖W_O v_s‖, made to sum to 1 over all keys, the mean over such heads: a
                    weight on a value near zero moves nothing (Kobayashi et al., 2020)
    gradient        ‖e_s ⊙ ∂ log p_t / ∂ e_s‖, with e_s the embedding of the token
    integrated      ‖(e_s − m) ⊙ ∫ ∂ log p_t / ∂ e_s da‖ along m + a (e − m), a from 0 to 1, for all
                    source tokens at once (Sundararajan et al., 2017). m is the mean embedding: from
                    zero, a norm before the first layer would make the whole path one point
    erasure         how much log p_t falls when the word of s is taken out of the source

An alignment says which source words each word of a translation comes from, by one of these
methods. Scores are summed over the tokens of a source word, and averaged over those of a target
word.

Of the two methods that look at attention, the heads that align are taken. For each head, α̃_t is
how the query from which target token t was predicted spreads its reading over the source tokens,
made to sum to 1. A head that aligns reads the source at all, and reads different words for
different outputs:

    score = mass · information
    mass         mean over t of what the head gives to the source
    information  H(mean of α̃_t) − mean of H(α̃_t), in bits

A head that always looks at the same word is sharp and still tells nothing: its information is 0.
The weights of the best heads are averaged.

Which of the methods is right is a question for an experiment, which puts them on trial
(`heed study attribution`). The model reads test sentences of the phrasebook with their reference
translations, and every method says how much each source word has to do with each target word. Two
questions are then asked:

    alignment    Is the word with the highest score the one that the grammar translated? Over target
                 words of which the grammar knows it, with A the links said, S the sure links and P
                 the possible ones (S among them), the alignment error rate of Och and Ney (2003) is

                     AER = 1 − (|A ∩ S| + |A ∩ P|) / (|A| + |S|)

    deletion     Does the translation need the words that the method names? The fall of log p of a
                 target word when the 1, 2, 3 source words with the highest scores are taken out.

Erasure chooses the first word by the deletion test itself, so there its first point is the highest
that one word can give. Two controls know nothing: the word at the same relative place in the source
(`diagonal`), and any word (`random`).
"""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from types import MappingProxyType
from typing import Literal, TypeAlias, get_args

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from heedful.data.synthetic.phrasebook.corpus import LinkedPair, linked_pairs
from heedful.errors import InputError
from heedful.generation.decoding import evaluating
from heedful.model import Decoder
from heedful.model.config import head_name
from heedful.model.decoder import TransformerBlock
from heedful.model.trace import TraceRecorder
from heedful.progress import Step
from heedful.records import Record
from heedful.stats import Estimate, percentile_interval
from heedful.studies.conclusions import Basis, Conclusion, Measurement, Study
from heedful.studies.translation.translator import Translation, Translator, in_one_line
from heedful.tokenization import Tokenizer
from heedful.tokenization.same_tokens import places_in

Method: TypeAlias = Literal["attention", "value norm", "gradient", "integrated", "erasure"]
METHODS: tuple[Method, ...] = get_args(Method)
BEST_METHOD: Method = "erasure"
"""What alignments are made with unless another is asked for: the method with the least alignment
error on the phrasebook, whose words the translation also needs most (`heed study attribution`; the
figures are in docs/inside.md)."""
STEPS = 16
"""Points of the path of integrated gradients (Gauss and Legendre). Where a norm bends the path near
its start the sum is off by some tenths of a nat; which word scores highest hardly ever changes."""

Scores = Float[np.ndarray, "targets sources"]
HeadWeights = Float[np.ndarray, "heads targets sources"]
"""Attention from target tokens to source tokens, for every head of every layer."""


@dataclass(frozen=True, eq=False)
class ForcedTranslation:
    """A source and its translation as a decoder reads them."""

    decoder: Decoder
    prompt: tuple[int, ...]
    """`begin source between`, as token ids."""
    opening: int
    """Tokens before the source: 1 with a mark that begins, else 0."""
    target: tuple[int, ...]
    owners: tuple[int, ...]
    """The word that each source token belongs to."""

    @property
    def sources(self) -> slice:
        """Where the source tokens stand."""
        return slice(self.opening, len(self.prompt) - 1)

    def row(self, removed: Iterable[int] = ()) -> list[int]:
        """Return what is read, without some words of the source."""
        gone = frozenset(removed)
        source = self.prompt[self.sources]
        kept = [token for token, word in zip(source, self.owners, strict=True) if word not in gone]
        return [*self.prompt[: self.opening], *kept, self.prompt[-1], *self.target[:-1]]

    def log_probabilities(
        self, removed: Sequence[frozenset[int]]
    ) -> dict[frozenset[int], Float[np.ndarray, " targets"]]:
        """Return log p of every target token without some words, for each such set of words."""
        lengths: dict[int, list[frozenset[int]]] = {}
        for words in dict.fromkeys(removed):
            lengths.setdefault(len(self.row(words)), []).append(words)
        found: dict[frozenset[int], Float[np.ndarray, " targets"]] = {}
        with torch.inference_mode(), evaluating(self.decoder):
            for sets in lengths.values():
                rows = torch.tensor([self.row(words) for words in sets])
                chosen = _target_log_probabilities(self.decoder, rows, self.target, None)
                found.update(zip(sets, chosen.numpy(), strict=True))
        return found


def scores(reading: ForcedTranslation, method: Method) -> Scores:
    """Return the score of every source token for every target token.

    Of the two methods that look at heads, this is the mean over all of them; `head_weights` has
    them one by one.
    """
    if method in ("attention", "value norm"):
        mean: Scores = head_weights(reading, norms=method == "value norm").mean(axis=0)
        return mean
    if method == "erasure":
        return _erasure(reading)
    products = gradient_products if method == "gradient" else integrated_products
    found: Scores = products(reading).norm(dim=-1).numpy()
    return found


def head_weights(reading: ForcedTranslation, *, norms: bool = False) -> HeadWeights:
    """Return the weights of all heads, layer after layer; with `norms`, times ‖W_O v‖."""
    decoder = reading.decoder
    with torch.inference_mode(), evaluating(decoder):
        trace = decoder.trace(torch.tensor([reading.row()], device=decoder.embedding.weight.device))
    asking = slice(len(reading.prompt) - 1, None)  # token t is predicted from the position before
    found = []
    for layer, block in zip(trace.layers, decoder.blocks, strict=True):
        weights = layer.weights[0]
        if norms:
            assert isinstance(block, TransformerBlock)
            heads, width = weights.shape[0], layer.values.shape[-1]
            values = layer.values[0].repeat_interleave(heads // layer.values.shape[1], dim=0)
            output = block.attention.output.weight.detach().reshape(-1, heads, width)
            written = torch.einsum("hsw,ohw->hso", values.double(), output.double())
            weights = weights * written.norm(dim=-1).unsqueeze(1)
            weights = weights / weights.sum(dim=-1, keepdim=True)
        found.append(weights[:, asking, reading.sources].cpu().numpy())
    return np.concatenate(found)


def _erasure(reading: ForcedTranslation) -> Scores:
    words = sorted(set(reading.owners))
    sets = [frozenset[int]()] + [frozenset([word]) for word in words]
    found = reading.log_probabilities(sets)
    fallen = {word: found[sets[0]] - found[frozenset([word])] for word in words}
    counts = {word: reading.owners.count(word) for word in words}
    # A word falls as a whole: its tokens share it, so that the sum over them is the word's score.
    rows = [np.maximum(fallen[word], 0.0) / counts[word] for word in reading.owners]
    return np.stack(rows, axis=1)


Products: TypeAlias = Float[Tensor, "targets sources width"]


def gradient_products(reading: ForcedTranslation) -> Products:
    """Return e ⊙ ∂ log p_t / ∂ e for every target and source token."""
    width = reading.decoder.config.width
    return _products(reading, torch.zeros(width), [(1.0, 1.0)])


def integrated_products(reading: ForcedTranslation, steps: int = STEPS) -> Products:
    """Return (e − m) ⊙ the mean gradient along the path from the mean embedding m.

    The sum over source tokens is the difference of log p_t between the ends of the path.
    """
    places, weights = np.polynomial.legendre.leggauss(steps)
    points = [(float(x + 1) / 2, float(w) / 2) for x, w in zip(places, weights, strict=True)]
    return _products(reading, reading.decoder.embedding.weight.detach().mean(dim=0), points)


def _products(
    reading: ForcedTranslation, baseline: Tensor, points: list[tuple[float, float]]
) -> Products:
    decoder, count = reading.decoder, len(reading.target)
    rows = torch.tensor([reading.row()]).expand(count, -1)
    path = _Path(decoder, rows.shape[1], reading.sources, baseline)
    total = torch.zeros(())
    with torch.enable_grad(), evaluating(decoder):
        for point, weight in points:
            path.point = point
            # Row t asks for token t alone, so that one pass back serves all of them.
            asked = _target_log_probabilities(decoder, rows, reading.target, path)
            (gradient,) = torch.autograd.grad(asked.diagonal().sum(), path.tokens)
            total = total + weight * gradient
    return (path.way * total).detach().double()


class _Path(TraceRecorder):
    """Puts embeddings of the source somewhere between a baseline and their own place."""

    def __init__(self, decoder: Decoder, time: int, sources: slice, baseline: Tensor) -> None:
        super().__init__(keep=())
        self.point, self.sources = 1.0, sources
        weight = decoder.embedding.weight
        with torch.no_grad():
            positions = torch.arange(time, device=weight.device).expand(1, -1)
            nothing = torch.zeros(1, time, decoder.config.width).to(weight)
            self._positions = decoder.add_positions(nothing, positions)
            start = decoder.add_positions(nothing + baseline.to(weight), positions)
            self._baseline = (start - self._positions)[:, sources]
        self.way = self.tokens = torch.zeros(())

    def change(self, place: str, tensor: Tensor) -> Tensor:
        """Replace what comes from the tokens of the source; positions stay."""
        if place != "embedded":
            return tensor
        stream = tensor.detach().clone()
        positions = self._positions[:, self.sources]
        self.way = stream[:, self.sources] - positions - self._baseline
        self.tokens = (self._baseline + self.point * self.way).requires_grad_()
        stream[:, self.sources] = positions + self.tokens
        return stream


def _target_log_probabilities(
    decoder: Decoder, rows: Tensor, target: Sequence[int], recorder: TraceRecorder | None
) -> Float[Tensor, "rows targets"]:
    hidden = decoder.hidden(rows.to(decoder.embedding.weight.device), recorder=recorder)
    logits = decoder.logits(hidden[:, -len(target) :]).double()
    chosen = torch.tensor(target, device=logits.device).expand(len(rows), -1).unsqueeze(-1)
    return logits.log_softmax(dim=-1).gather(-1, chosen).squeeze(-1).cpu()


MOST_HEADS = 4
"""Heads that are averaged at most."""
NEAR = 0.5
"""A head joins the best one if it scores at least this share of it."""

_WORDS = re.compile(r"\w+(?:['’-]\w+)*|[^\w\s]")
_ELIDING_WORDS = re.compile(r"\w+(?:-\w+)*['’]?|[^\w\s]")
"""In French the apostrophe ends a word: l'hôtel is two."""
ELIDING = ("fr", "fra", "it", "ita")


@dataclass(frozen=True, eq=False, kw_only=True)
class AligningHead(Record):
    """A head whose weights were used."""

    layer: int
    """From 0."""
    head: int
    """From 0."""
    name: str
    """As it is called everywhere."""
    mass: float
    """Share of its reading that it gives to the source, on average."""
    information: float
    """Bits that a target token's reading tells about which target token it is."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Alignment(Record):
    """Words of a source and of its translation, and who read whom."""

    source: str
    """The source as the model read it."""
    text: str
    """Its translation."""
    source_words: tuple[str, ...]
    """Words and marks of the source."""
    target_words: tuple[str, ...]
    """Words and marks of the translation."""
    weights: Float[np.ndarray, "targets sources"]
    """The share of each source word in the score of each output word; rows sum to 1."""
    mass: Float[np.ndarray, " targets"]
    """The whole score that the source has for each output word. Of attention: how much of its
    reading the word gave to the source. Of erasure: nats of log p."""
    links: tuple[int, ...]
    """The source word with the highest score for each output word."""
    heads: tuple[AligningHead, ...]
    """The heads that were averaged, best first; none where the method looks at no heads."""
    method: Method = BEST_METHOD
    """How it was found out."""

    @property
    def pairs(self) -> str:
        """The links as `source-target` numbers from 0, the form that other tools read."""
        return " ".join(f"{link}-{place}" for place, link in enumerate(self.links))


def align(
    translator: Translator, translation: Translation, rank: int = 0, method: Method = BEST_METHOD
) -> Alignment:
    """Return the alignment of one of a line's translations: the best one, or that of `rank`."""
    if not 0 <= rank < len(translation.hypotheses):
        raise InputError(
            "rank",
            f"is {rank}",
            expected=f"the line has {len(translation.hypotheses)} translations",
        )
    hypothesis = translation.hypotheses[rank]
    tokens = hypothesis.tokens[:-1] if hypothesis.finished else hypothesis.tokens
    return align_tokens(translator, translation.source, tokens, method)


def align_tokens(
    translator: Translator, source: str, tokens: Sequence[int], method: Method = BEST_METHOD
) -> Alignment:
    """Return the alignment of a source with any translation of it, given as tokens."""
    if method not in METHODS:
        raise InputError("method", f"is {method!r}", expected=f"one of {', '.join(METHODS)}")
    text = translator.format.written(source)
    sources, targets, shown = words_of(translator, text, tokens)
    if not targets.words or not sources.words:
        return _nothing(text, shown, sources, targets, method)
    found, heads = _scored(reading_of(translator, source, tokens, sources), method)
    raw = of_words(found, sources, targets)
    mass = raw.sum(axis=1)
    # A word that owes nothing to the source has no row; it is spread evenly, with mass 0.
    even = np.full_like(raw, 1 / raw.shape[1])
    rows = np.divide(raw, mass[:, None], out=even, where=mass[:, None] > 0)
    return Alignment(
        source=text,
        text=shown,
        source_words=sources.words,
        target_words=targets.words,
        weights=rows,
        mass=mass,
        links=tuple(int(place) for place in rows.argmax(axis=1)),
        heads=heads,
        method=method,
    )


def of_words(
    found: Float[np.ndarray, "tokens source_tokens"], sources: TextWords, targets: TextWords
) -> Float[np.ndarray, "targets sources"]:
    """Return the scores of words, from those of their tokens."""
    return targets.joined(sources.joined(found.T).T, mean=True)


def words_of(
    translator: Translator, text: str, tokens: Sequence[int]
) -> tuple[TextWords, TextWords, str]:
    """Return the words of a written source and of a translation, and the text of the latter."""
    written, tokenizer = translator.format, translator.tokenizer
    read = written.source(text, tokenizer)
    spans = tokenizer.core.encode(read, add_special_tokens=False).offsets
    sources = TextWords.of(text, written.languages[0], _placed(spans, places_in(read, text)))
    return sources, *target_words(translator, tokens, text)


def target_words(
    translator: Translator, tokens: Sequence[int], beside: str
) -> tuple[TextWords, str]:
    """Return the words of a translation, with the capital of the text beside it, and its text."""
    spelt, spans = _spans_of_tokens(translator.tokenizer, tokens)
    shown = spelt
    if translator.format.same_tokens:
        shown = translator.format.shown(spelt, beside)
        spans = _placed(spans, places_in(spelt, shown))
    return TextWords.of(shown, translator.format.languages[1], spans), shown


def _placed(spans: Iterable[tuple[int, int]], places: Sequence[int]) -> list[tuple[int, int]]:
    last = len(places) - 1  # a letter of several tokens may be longer before its end has come
    return [(places[min(start, last)], places[min(end, last)]) for start, end in spans]


def reading_of(
    translator: Translator, source: str, tokens: Sequence[int], words: TextWords
) -> ForcedTranslation:
    """Return a source and a translation of it as the decoder of a translator reads them."""
    prompt, problem = translator.prompt(source)
    if problem:
        raise InputError("source", problem)
    opening = 0 if translator.marks.begin is None else 1
    return ForcedTranslation(
        translator.decoder, tuple(prompt), opening, tuple(tokens), words.owners
    )


def _scored(
    reading: ForcedTranslation, method: Method
) -> tuple[Float[np.ndarray, "targets sources"], tuple[AligningHead, ...]]:
    if method not in ("attention", "value norm"):
        return scores(reading, method), ()
    weights = head_weights(reading, norms=method == "value norm")
    heads = weights.shape[0] // reading.decoder.config.layers
    scored = head_scores(weights)
    chosen = _chosen([mass * bits for mass, bits in scored])
    named = tuple(
        AligningHead(
            layer=head // heads,
            head=head % heads,
            name=head_name(head // heads, head % heads),
            mass=scored[head][0],
            information=scored[head][1],
        )
        for head in chosen
    )
    return weights[chosen].mean(axis=0), named


def head_scores(weights: HeadWeights) -> list[tuple[float, float]]:
    """Return mass and information of each head."""
    mass = weights.sum(axis=2)
    shares = weights / np.maximum(mass[:, :, None], np.finfo(float).tiny)
    information = _entropy(shares.mean(axis=1)) - _entropy(shares).mean(axis=1)
    return [
        (float(one), max(0.0, float(bits)))
        for one, bits in zip(mass.mean(axis=1), information, strict=True)
    ]


def _chosen(scores: Sequence[float]) -> list[int]:
    order = sorted(range(len(scores)), key=lambda head: -scores[head])
    return [head for head in order[:MOST_HEADS] if scores[head] >= NEAR * scores[order[0]]]


def _entropy(shares: np.ndarray) -> np.ndarray:
    logs = np.log2(shares, out=np.zeros_like(shares), where=shares > 0)
    found: np.ndarray = -(shares * logs).sum(axis=-1)
    return found


@dataclass(frozen=True, eq=False)
class TextWords:
    """The words of a text, and the word that each of its tokens belongs to."""

    words: tuple[str, ...]
    owners: tuple[int, ...]
    spans: tuple[tuple[int, int], ...]
    """Where each word stands in the text."""

    @classmethod
    def of(cls, text: str, language: str, spans: Sequence[tuple[int, int]]) -> TextWords:
        pattern = _ELIDING_WORDS if language in ELIDING else _WORDS
        found = list(pattern.finditer(text))
        # A token owns the space before its word, so a space alone belongs to the word after it.
        ends = [word.end() for word in found]
        last = max(len(found) - 1, 0)
        owners = [
            next((place for place, end in enumerate(ends) if end > start), last)
            for start, _ in spans
        ]
        spans = tuple(word.span() for word in found)
        return cls(tuple(word.group() for word in found), tuple(owners), spans)

    def joined(self, rows: np.ndarray, *, mean: bool = False) -> np.ndarray:
        """Return one row for each word: the sum, or the mean, of the rows of its tokens."""
        words = np.zeros((len(self.words), rows.shape[1]))
        np.add.at(words, list(self.owners), rows)
        if mean:
            counts = np.bincount(self.owners, minlength=len(self.words))
            words /= np.maximum(counts, 1)[:, None]
        return words


def _spans_of_tokens(
    tokenizer: Tokenizer, tokens: Sequence[int]
) -> tuple[str, list[tuple[int, int]]]:
    """Return the text of tokens and where in it each one lies."""
    prefixes = [tokens[:count] for count in range(1, len(tokens) + 1)]
    texts = tokenizer.decode_batch(prefixes)
    # Half a character is shown as U+FFFD until its other half comes: no prefix may shrink.
    ends = list(itertools.accumulate((len(text) for text in texts), max))
    return in_one_line(texts[-1] if texts else ""), list(itertools.pairwise([0, *ends]))


def _nothing(
    text: str, shown: str, sources: TextWords, targets: TextWords, method: Method
) -> Alignment:
    shape = (len(targets.words), len(sources.words))
    return Alignment(
        source=text,
        text=shown,
        source_words=sources.words,
        target_words=targets.words,
        weights=np.zeros(shape),
        mass=np.zeros(shape[0]),
        links=(),
        heads=(),
        method=method,
    )


CONTROLS = ("diagonal", "random")
DELETED = 3
"""Source words that are taken out at most: of sentences of seven words, about half."""
RESAMPLES = 2_000
"""Of the sentences, for the intervals of a ratio of sums."""

Links = frozenset[tuple[int, int]]
"""Pairs of a source word and a target word, by number."""
WordScores = Float[np.ndarray, "targets sources"]
OtherMethods = Mapping[str, Callable[[ForcedTranslation], Scores]]
"""Methods of another program, by name: what each says of the tokens of a source and its
translation."""
NO_OTHERS: OtherMethods = MappingProxyType({})


@dataclass(frozen=True, eq=False, kw_only=True)
class MethodTrial(Record):
    """How one method did."""

    method: str
    alignment_error: Estimate
    """AER over all sentences, with a bootstrap interval over sentences; 0 is perfect."""
    deletion: tuple[Estimate, ...]
    """Fall of log p of a target word, in nats, after 1, 2 and 3 source words are taken out; means
    over the words of a sentence, with intervals over sentences."""
    mean_deletion: Estimate
    """The mean of these."""
    seconds: float
    """Processor seconds for a sentence, on this machine."""


@dataclass(frozen=True, eq=False, kw_only=True)
class AttributionStudy(Study):
    """Every method, on the same sentences."""

    model: str
    """As it was called."""
    sentences: int
    """Test sentences of the phrasebook that have a sure link."""
    target_words: int
    """Words of their translations."""
    linked_words: int
    """Those of them for which the grammar knows the source word."""
    sure_links: int
    trials: tuple[MethodTrial, ...]
    """The five methods, then those of other programs, then the controls."""
    best: str
    """The method with the least alignment error."""
    second: str
    lead: Estimate
    """Alignment error of the second minus that of the best, paired over sentences."""
    strongest: str
    """The method whose words the translation needs most."""
    strength: Estimate
    """Its mean deletion minus that of the next method, paired over sentences."""

    @property
    def conclusions(self) -> tuple[Conclusion, ...]:
        """Which method aligns best, and whose words are needed most."""
        basis = Basis(cases=self.sentences, of="test sentences of the phrasebook")
        return (
            Measurement(
                about="which method aligns best",
                said=f"Of {len(METHODS)} methods {self.best} aligns best: its alignment error is "
                f"{{value}} below that of {self.second}, the next",
                estimate=self.lead,
                basis=basis,
                show=lambda value: f"{100 * value:.1f} points",
                null=0.0,
            ).conclude(),
            Measurement(
                about="which words the translation needs most",
                said=f"Taking out the words that {self.strongest} names makes log p of a target "
                "word fall by {value} more than those of the next method",
                estimate=self.strength,
                basis=basis,
                show=lambda value: f"{value:.2f} nats",
                null=0.0,
            ).conclude(),
        )


def study_attribution(
    translator: Translator,
    name: str,
    *,
    sentences: int = 200,
    seed: int = 0,
    others: OtherMethods = NO_OTHERS,
    progress: Step | None = None,
) -> AttributionStudy:
    """Try every method on test sentences of the phrasebook, and return how each did.

    `others` are tried beside ours; the best and the second are among ours.
    """
    if translator.format.languages != ("fr", "en"):
        languages = " into ".join(translator.format.languages)
        raise InputError(
            name,
            f"translates {languages}",
            expected="French into English, for which the phrasebook knows the links",
        )
    results: list[_Sentence] = []
    random = np.random.default_rng(seed)
    pairs = [one for one in linked_pairs(sentences) if any(link.sure for link in one.links)]
    for done, pair in enumerate(pairs, start=1):
        results.append(_tried(translator, pair, random, others))
        if progress is not None:
            progress(done, len(pairs))
    if not results:
        raise InputError("sentences", f"{sentences} give none with a sure link", hint="take more")
    return _record(name, results, (*METHODS, *others, *CONTROLS))


@dataclass(frozen=True, eq=False)
class _Sentence:
    """One sentence under trial; counts and falls of each method by name."""

    counts: dict[str, tuple[int, int, int]]
    """|A ∩ S|, |A ∩ P|, |A|."""
    sure: int
    linked: int
    words: int
    falls: dict[str, Float[np.ndarray, " deleted"]]
    seconds: dict[str, float]


def _tried(
    translator: Translator, pair: LinkedPair, random: np.random.Generator, others: OtherMethods
) -> _Sentence:
    english = translator.format.target(pair.pair.english, translator.tokenizer)
    tokens = translator.tokenizer.encode(english)
    text = translator.format.written(pair.pair.french)
    sources, targets, shown = words_of(translator, text, tokens)
    if shown != pair.pair.english or text != pair.pair.french:
        raise InputError(
            "model", "writes the phrasebook differently", expected="a tokenizer that loses nothing"
        )
    found: dict[str, WordScores] = {}
    seconds: dict[str, float] = {}
    for method in METHODS:
        began = time.process_time()
        aligned = align_tokens(translator, pair.pair.french, tokens, method)
        seconds[method] = time.process_time() - began
        found[method] = aligned.weights
    reading = reading_of(translator, pair.pair.french, tokens, sources)
    for name, score in others.items():
        began = time.process_time()
        found[name] = of_words(score(reading), sources, targets)
        seconds[name] = time.process_time() - began
    shape = (len(targets.words), len(sources.words))
    found["diagonal"] = -abs(_places(shape[0])[:, None] - _places(shape[1])[None])
    found["random"] = random.random(shape)
    sure, possible = gold_links(pair, sources.spans, targets.spans)
    linked = sorted({target for _, target in possible})
    counts = {name: _counted(scores, linked, sure, possible) for name, scores in found.items()}
    falls = _falls(reading, found, targets.owners)
    return _Sentence(counts, len(sure), len(linked), shape[0], falls, seconds)


def _places(count: int) -> Float[np.ndarray, " count"]:
    return (np.arange(count) + 0.5) / count


def gold_links(
    pair: LinkedPair, sources: Sequence[tuple[int, int]], targets: Sequence[tuple[int, int]]
) -> tuple[Links, Links]:
    """Return the sure and the possible links between words that stand at these places."""
    sure: set[tuple[int, int]] = set()
    possible: set[tuple[int, int]] = set()
    for link in pair.links:
        left = [number for number, span in enumerate(sources) if _meet(span, link.french)]
        right = [number for number, span in enumerate(targets) if _meet(span, link.english)]
        links = {(source, target) for source in left for target in right}
        possible |= links
        if link.sure and len(links) == 1:
            sure |= links
    return frozenset(sure), frozenset(possible)


def _meet(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one[0] < other[1] and other[0] < one[1]


def _counted(
    scores: WordScores, linked: list[int], sure: Links, possible: Links
) -> tuple[int, int, int]:
    said = {(int(scores[target].argmax()), target) for target in linked}
    return len(said & sure), len(said & possible), len(said)


def _falls(
    reading: ForcedTranslation, found: dict[str, WordScores], owners: Sequence[int]
) -> dict[str, Float[np.ndarray, " deleted"]]:
    """Return how far log p of the target words falls, on average, for each number of words."""
    most = min(DELETED, len(set(reading.owners)) - 1)
    orders = {name: np.argsort(-scores, axis=1, kind="stable") for name, scores in found.items()}
    removed = {
        name: [[frozenset(row[:count].tolist()) for row in order] for count in range(1, most + 1)]
        for name, order in orders.items()
    }
    nothing = frozenset[int]()
    wanted = [nothing, *chain.from_iterable(chain.from_iterable(removed.values()))]
    log_p = reading.log_probabilities(wanted)
    tokens = [
        [place for place, owner in enumerate(owners) if owner == word]
        for word in range(len(next(iter(found.values()))))
    ]

    def fall(words: frozenset[int], target: int) -> float:
        return float((log_p[nothing] - log_p[words])[tokens[target]].sum())

    falls = {}
    for name, counts in removed.items():
        means = [np.mean([fall(words, j) for j, words in enumerate(row)]) for row in counts]
        # A sentence of two words has no third to take out: its last value stands.
        falls[name] = np.array([means[min(k, len(means) - 1)] for k in range(DELETED)])
    return falls


def _record(name: str, results: list[_Sentence], names: Sequence[str]) -> AttributionStudy:
    counts = {one: np.array([result.counts[one] for result in results]) for one in names}
    sure = np.array([result.sure for result in results])
    random = np.random.default_rng(0)
    chosen = random.integers(len(results), size=(RESAMPLES, len(results)))
    errors = {one: _error(counts[one], sure) for one in names}
    resampled = {
        one: np.array([_error(counts[one][rows], sure[rows]) for rows in chosen]) for one in names
    }
    falls = {one: np.stack([result.falls[one] for result in results]) for one in names}
    best, second = sorted(METHODS, key=lambda one: errors[one])[:2]
    strongest, next_one = sorted(METHODS, key=lambda one: -falls[one].mean())[:2]
    low, high = percentile_interval(resampled[second] - resampled[best])
    lead = errors[second] - errors[best]
    return AttributionStudy(
        model=name,
        sentences=len(results),
        target_words=sum(result.words for result in results),
        linked_words=sum(result.linked for result in results),
        sure_links=int(sure.sum()),
        trials=tuple(
            MethodTrial(
                method=one,
                alignment_error=_interval(errors[one], resampled[one], len(results)),
                deletion=tuple(Estimate.of(column) for column in falls[one].T),
                mean_deletion=Estimate.of(falls[one].mean(axis=1)),
                seconds=float(np.mean([result.seconds.get(one, 0.0) for result in results])),
            )
            for one in names
        ),
        best=best,
        second=second,
        lead=Estimate(value=lead, low=low, high=high, count=len(results)),
        strongest=strongest,
        strength=Estimate.of((falls[strongest] - falls[next_one]).mean(axis=1)),
    )


def _error(counts: np.ndarray, sure: np.ndarray) -> float:
    in_sure, in_possible, said = counts.sum(axis=0)
    return 1.0 - float(in_sure + in_possible) / float(said + sure.sum())


def _interval(value: float, resampled: np.ndarray, count: int) -> Estimate:
    low, high = percentile_interval(resampled)
    return Estimate(value=value, low=low, high=high, count=count)
