"""The heads of a trained model in the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from rich.console import RenderableType
from rich.text import Text

from heedful.views.heads_figures import COLOURS, WORDS
from heedful.views.terminal import bullets, number, paragraph, sentence, table

if TYPE_CHECKING:
    from heedful.stats import Estimate
    from heedful.studies.heads.behaviour import HeadBehaviour
    from heedful.studies.heads.comparisons import Finding
    from heedful.studies.heads.heads_study import HeadsStudy, Trained
    from heedful.studies.heads.predictable import Predictable, TokenName

LETTERS = {
    "previous": "P",
    "self": "I",
    "first": "F",
    "duplicate": "D",
    "induction": "N",
    "source": "S",
    "copies": "c",
    "averages": "a",
    "diffuse": "·",
}
MOST_HEADS = 12


def heads_study_tables(record: HeadsStudy) -> Iterator[RenderableType]:
    """Yield the map, the table, and every finding."""
    yield paragraph(
        f"{record.model}: {record.layers} layers of {record.heads} heads, "
        f"{record.parameters:,} parameters; read {record.tokens:,} tokens "
        f"in {record.rows} rows of {record.text}."
    )
    yield _map(record)
    yield paragraph(
        "; ".join(f"{LETTERS[label]} {WORDS[label]}" for label in record.behaviour.counts)
    )
    yield _strongest(record)
    yield from _keys(record)
    yield from _robustness(record)
    yield from _order(record)
    yield from predictable_tables(record.predictable)
    if record.trained is not None:
        yield from trained_tables(record.trained)
    seconds = ", ".join(f"{name} {value:.1f} s" for name, value in record.seconds.items())
    yield paragraph(f"Took: {seconds}.")


def interval(estimate: Estimate | None, digits: int = 3) -> str:
    """Write an estimate as value ± half its interval."""
    if estimate is None:
        return "–"
    if not np.isfinite(estimate.error):
        return number(estimate.value, digits)
    return f"{number(estimate.value, digits)} ± {number(estimate.error, 2)}"


def strongest(record: HeadsStudy) -> list[tuple[HeadBehaviour, str]]:
    """Return heads that look for something, the clearest first, and no label too often."""
    found = [
        (head, head.looks_for)
        for head in sorted(
            (head for head in record.behaviour.heads if head.looks_for),
            key=lambda head: -head.masses[head.looks_for].value,
        )
    ]
    counts: dict[str, int] = {}
    shown = []
    for head, label in found:
        counts[label] = counts.get(label, 0) + 1
        if counts[label] <= 3:
            shown.append((head, label))
    return shown[:MOST_HEADS]


def _map(record: HeadsStudy) -> RenderableType:
    made = table("What each head does", "layer", *map(str, range(record.heads)), left=())
    for layer in range(record.layers):
        row = record.behaviour.heads[layer * record.heads : (layer + 1) * record.heads]
        made.add_row(
            str(layer), *(Text(LETTERS[head.label], style=COLOURS[head.label]) for head in row)
        )
    return made


def _strongest(record: HeadsStudy) -> RenderableType:
    made = table(
        "The clearest heads", "layer.head", "looks for", "mass", "copies", "averages", "diffuse",
        "keys read", left=(0, 1),
    )  # fmt: skip
    for head, label in strongest(record):
        made.add_row(
            f"{head.layer}.{head.head}",
            WORDS[label],
            interval(head.masses[label], 2),
            *(f"{head.kinds[kind]:.0%}" for kind in ("copies", "averages", "diffuse")),
            interval(head.effective_keys, 2),
        )
    return made


KEY_ROWS = (
    ("spread", "spread of norms (std / mean)"),
    ("within", "  within a token"),
    ("across", "  across tokens"),
    ("first ratio", "first key, relative to others"),
    ("effect", "share of the reading moved by one norm"),
    ("centred effect", "  after the mean key is taken away"),
    ("lead", "lead β of the key read most"),
    ("equivalent beta", "  β of orthonormal keys with that mass"),
    ("used", "  share of the best lead of its norm"),
)


def _keys(record: HeadsStudy) -> Iterator[RenderableType]:
    keys = record.keys
    made = table("Keys", "", "mean over heads", left=(0,))
    for name, words in KEY_ROWS:
        if name in keys.means:
            made.add_row(words, interval(keys.means[name]))
    made.add_row(
        "  keys read most that no query can copy", f"{keys.hidden} of {len(keys.attended)}"
    )
    yield made


def _robustness(record: HeadsStudy) -> Iterator[RenderableType]:
    found = record.robustness
    made = table("Robustness to key lengths 1 + ξ, ξ ~ N(0, ½)", "", "change", left=(0,))
    made.add_row("c of a head, relative", interval(found.means["head"]))
    made.add_row("a layer, same lengths in all heads", interval(found.means["shared"]))
    made.add_row("a layer, own lengths in each head", interval(found.means["independent"]))
    made.add_row("loss, all layers (nats)", interval(found.everywhere))
    yield made
    exact = [one for one in found.ablations if one.exact is not None]
    worst = sorted(exact, key=lambda one: -(one.exact.value if one.exact else 0.0))[:5]
    if worst:
        named = ", ".join(f"{one.layer}.{one.head} ({interval(one.exact, 2)})" for one in worst)
        agreement = (
            ""
            if found.agreement is None
            else f"; correlation with the gradient {found.agreement:.2f}"
        )
        yield paragraph(
            f"Leaving out one head ({found.measured} of {len(found.ablations)} measured"
            f"{agreement}): the loss of {number(found.loss.value, 3)} rises most without {named}."
        )


def _order(record: HeadsStudy) -> Iterator[RenderableType]:
    best = record.probe.best
    lines = [
        ("with its mask: " if test.masked else "without a mask: ") + sentence(test.statement)
        for test in record.order
    ]
    depth = record.probe.r2.index(best)
    lines.append(
        f"Positions ({record.positions}): a linear probe on random tokens explains "
        f"{best.value:.0%} ± {100 * best.error:.0f} points of the position after "
        f"{depth} layers, and {record.probe.r2[-1].value:.0%} after the last."
    )
    yield bullets(lines)


def predictable_tables(record: Predictable) -> Iterator[RenderableType]:
    """Yield which tokens can never be the most likely one."""
    yield paragraph(
        f"Tokens: {sentence(record.statement)} ({record.geometry}; {record.seconds:.1f} s.)"
    )
    for name, tokens in (
        ("never", record.never_tokens),
        ("at most a tie", record.tie_tokens),
        ("open", record.open_tokens),
    ):
        if tokens:
            yield paragraph(f"{name}: {named_tokens(tokens)}", indent=2)


def named_tokens(tokens: Sequence[TokenName], most: int = 20) -> str:
    """Write tokens by name; ids without one as numbers."""
    shown = [repr(token.text) if token.text else f"id {token.id}" for token in tokens[:most]]
    return ", ".join(shown) + (", …" if len(tokens) > most else "")


def trained_tables(record: Trained) -> Iterator[RenderableType]:
    """Yield what the small models say."""
    made = table(
        f"Where the norm stands ({record.trainings} models, {record.steps} steps each)",
        "norm", "loss", "spread of key norms", "largest / smallest", "reading moved", "centred",
    )  # fmt: skip
    for variant in record.norms.variants:
        made.add_row(
            variant.name,
            interval(variant.loss),
            interval(variant.spread),
            interval(variant.largest_ratio),
            interval(variant.effect),
            interval(variant.centred_effect),
        )
    yield made
    made = table(
        f"More heads at width {record.heads.width}",
        "heads", "loss", "variance, same lengths", "own lengths", "single heads", "added loss",
    )  # fmt: skip
    for count in record.heads.counts:
        made.add_row(
            str(count.heads),
            interval(count.loss),
            interval(count.shared),
            interval(count.independent),
            interval(count.single),
            interval(count.loss_change),
        )
    yield made
    made = table(
        "Positions", "scheme", "loss", "R² of a probe, last layer", "off by, tokens",
        "equivariant, causal", "no mask",
    )  # fmt: skip
    for scheme in record.positions.schemes:
        tests = {test.masked: "yes" if test.holds else "no" for test in scheme.tests}
        made.add_row(
            scheme.name,
            interval(scheme.loss),
            interval(scheme.last),
            interval(scheme.mean_error[-1]),
            tests[True],
            tests[False],
        )
    yield made
    yield _verdicts((*record.norms.findings, *record.heads.findings, *record.positions.findings))


def _verdicts(findings: Sequence[Finding]) -> RenderableType:
    made = table("Verdicts", "", "statement", left=(0, 1))
    for finding in findings:
        made.add_row(finding.verdict, f"{finding.says} {sentence(finding.statement)}")
    return made
