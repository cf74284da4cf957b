"""The heads part of the report: what a trained model does, beside what the sheets say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heedful.views.drawing import inline_svg
from heedful.views.formulas import formula_svg
from heedful.views.heads_figures import (
    WORDS,
    counts_figure,
    heads_map,
    keys_figure,
    norms_figure,
    order_figure,
    robustness_figure,
)
from heedful.views.heads_tables import interval, named_tokens, strongest
from heedful.views.page import Block, Figure, Section, Table
from heedful.views.terminal import sentence

if TYPE_CHECKING:
    from heedful.studies.heads.comparisons import Finding
    from heedful.studies.heads.heads_study import HeadsStudy, Trained


def heads_section(record: HeadsStudy, seconds: float, *, options: str = "") -> Section:
    """Tell a study of heads that was run with some options."""
    command = f"heed study heads {record.model} {options}".rstrip()
    blocks = [_map(record, command), _keys(record), _robustness(record)]
    if record.trained is not None:
        blocks += [_norms(record.trained), _counts(record.trained), _order(record, record.trained)]
    blocks.append(_tokens(record, command))
    return Section(
        name="heads",
        title="Heads of a trained model",
        lead=f"{record.layers} layers of {record.heads} heads, watched while they read "
        f"{record.tokens:,} tokens: do they do what the reasoning about one query says?",
        blocks=tuple(blocks),
        findings=_findings(record),
        seconds=seconds,
    )


def _map(record: HeadsStudy, command: str) -> Block:
    behaviour = record.behaviour
    parts = ", ".join(f"{count} {WORDS[label]}" for label, count in behaviour.counts.items())
    paragraphs = [
        "For each position, a head copies (at least "
        f"{behaviour.thresholds['copied']:.0%} of its reading comes from one key), averages a "
        f"few keys (an effective number of at most {behaviour.thresholds['few']:.0f}), or reads "
        "diffusely. Colour tells what it looks for, where at least "
        f"{behaviour.thresholds['chosen']:.0%} of its mass is there, and how it reads otherwise; "
        "the number is the effective number of keys.",
        sentence(f"of {len(behaviour.heads)} heads: {parts}"),
        "Duplicates and induction are measured on random tokens written twice, where each token "
        "has exactly one earlier copy.",
    ]
    rows = tuple(
        (
            f"{head.layer}.{head.head}",
            WORDS[label],
            interval(head.masses[label], 2),
            f"{head.kinds['copies']:.0%} / {head.kinds['averages']:.0%} / "
            f"{head.kinds['diffuse']:.0%}",
            interval(head.effective_keys, 2),
        )
        for head, label in strongest(record)
    )
    tables: tuple[Table, ...] = ()
    if rows:
        tables = (
            Table(
                columns=("layer.head", "looks for", "mass", "copies / averages / diffuse", "keys"),
                rows=rows,
                caption="The clearest heads, with 95 % intervals.",
            ),
        )
    return Block(
        heading="What each head does",
        paragraphs=tuple(paragraphs),
        figures=(
            Figure(
                svg=inline_svg(heads_map(record), "map of heads"),
                caption=f"Every head of {record.model}, reading {record.text}.",
                command=command,
            ),
        ),
        tables=tables,
    )


def _keys(record: HeadsStudy) -> Block:
    means = record.keys.means
    paragraphs = [
        f"Norms of the keys of a head vary by {interval(means['spread'], 2)} of their mean. "
        "Giving all keys of a head one norm moves "
        f"{interval(means['effect'], 2)} of the reading. But a norm is not what softmax sees: the "
        "same vector may be added to every key without changing a weight. With the mean key taken "
        f"away first, equal norms move {interval(means['centred effect'], 2)}.",
    ]
    if "within" in means and "across" in means:
        paragraphs.append(
            f"The same token in other places has keys whose norms vary by "
            f"{interval(means['within'], 2)}; the means of tokens vary by "
            f"{interval(means['across'], 2)}."
        )
    if "used" in means:
        paragraphs.append(
            "The margin of a key is its distance to the hull of the others in sight; a query of a "
            "given norm can give it at most that margin as a lead. The keys that are read most "
            f"get {interval(means['used'], 2)} of the lead that their query could give. Their lead "
            f"β is {interval(means['lead'], 2)}; orthonormal keys would need a scale of "
            f"{interval(means['equivalent beta'], 2)} for the same mass. "
            f"{record.keys.hidden} of {len(record.keys.attended)} lie inside the hull, where no "
            "query could copy them."
        )
    return Block(
        heading="Keys in practice",
        formula=formula_svg(
            r"\beta = \min_i \dfrac{q^\top (k_j - k_i)}{\sqrt{d}} \;\leq\; "
            r"\dfrac{\|q\|\,\delta_j}{\sqrt{d}}"
        ),
        paragraphs=tuple(paragraphs),
        figures=(
            Figure(
                svg=inline_svg(keys_figure(record.keys), "keys in practice"),
                caption="Left: every head of keys, later layers darker. Right: the key that a "
                "query reads most, its lead against the best one possible.",
            ),
        ),
    )


def _robustness(record: HeadsStudy) -> Block:
    found = record.robustness
    return Block(
        heading="Uncertain lengths, and heads left out",
        paragraphs=(
            "The lengths of all keys are multiplied by 1 + ξ, with ξ of variance "
            f"{found.variance:g}, as in the sheets. The output of a head changes by "
            f"{interval(found.means['head'], 2)} of its size; what a whole layer adds, by "
            f"{interval(found.means['shared'], 2)} when all heads see the same lengths, and by "
            f"{interval(found.means['independent'], 2)} when each has its own. With every layer "
            f"disturbed, the loss of {interval(found.loss, 3)} rises by "
            f"{interval(found.everywhere, 3)}.",
            f"Leaving out one head was measured for {found.measured} of {len(found.ablations)} "
            "heads, those first for which the gradient promises most"
            + (
                "."
                if found.agreement is None
                else f"; gradient and measurement correlate by {found.agreement:.2f}."
            ),
        ),
        figures=(
            Figure(
                svg=inline_svg(robustness_figure(found), "robustness of heads"),
                caption="Left: relative change of c for each head, and of what its layer adds. "
                "Right: the heads that matter most, measured and by the gradient.",
            ),
        ),
    )


def _norms(record: Trained) -> Block:
    norms = record.norms
    return Block(
        heading="A footnote tested: norms of keys with pre-norm",
        paragraphs=(
            "A sheet remarks that with layer normalisation before attention, norms of keys "
            "cannot be too different. The same small model was trained with the norm before, "
            "after, and with normalised queries and keys. In a post-norm model the stream "
            "between layers is normalised as well: only its first layer reads raw embeddings.",
        ),
        figures=(
            Figure(
                svg=inline_svg(norms_figure(norms), "placement of the norm"),
                caption=f"Means over {norms.variants[0].spread.count} seeds with 95 % intervals.",
            ),
        ),
        tables=(_verdicts(norms.findings),),
    )


def _counts(record: Trained) -> Block:
    return Block(
        heading="Do more heads reduce the variance?",
        paragraphs=(
            "The summary of a sheet says so: other heads remain stable where one is disturbed. "
            "The same model was trained with 1, 2, 4 and 8 heads at one width, and the lengths "
            "of its keys were then made uncertain.",
        ),
        figures=(
            Figure(
                svg=inline_svg(counts_figure(record.heads), "heads and variance"),
                caption=f"Means over {record.heads.counts[0].loss.count} seeds with 95 % "
                "intervals.",
            ),
        ),
        tables=(_verdicts(record.heads.findings),),
    )


def _order(record: HeadsStudy, trained: Trained) -> Block:
    schemes = trained.positions
    rows = tuple(
        (
            scheme.name,
            interval(scheme.loss),
            interval(scheme.last),
            interval(scheme.mean_error[-1], 2),
            *("yes" if test.holds else "no" for test in scheme.tests),
        )
        for scheme in schemes.schemes
    )
    return Block(
        heading="What a model knows about order",
        paragraphs=(
            "Without positions and without a mask, a trained model is a function of a set: "
            "shuffled tokens give equally shuffled outputs. The causal mask alone ends that: the "
            "first token sees one token, the second two.",
            f"The model above ({record.positions}) gives a linear probe "
            f"{interval(record.probe.best, 2)} of the variance of the position at its best depth.",
        ),
        figures=(
            Figure(
                svg=inline_svg(order_figure(schemes), "order in hidden states"),
                caption=f"R² on rows that the probe never saw, {schemes.length} positions of "
                "random tokens, so that content says nothing about the position.",
            ),
        ),
        tables=(
            Table(
                columns=(
                    "positions", "loss", "R², last layer", "off by, tokens",
                    "equivariant, causal", "without mask",
                ),
                rows=rows,
            ),
            _verdicts(schemes.findings),
        ),
    )  # fmt: skip


def _tokens(record: HeadsStudy, command: str) -> Block:
    found = record.predictable
    paragraphs = [
        "The output layer compares the final state with one row a token. A row inside the hull "
        "of the others never wins, whatever the model has read: the same certificates that tell "
        f"which keys can be copied. {found.geometry}.",
        sentence(found.statement),
    ]
    for name, tokens in (
        ("Never the most likely", found.never_tokens),
        ("At most a tie", found.tie_tokens),
        ("Open", found.open_tokens),
    ):
        if tokens:
            paragraphs.append(f"{name}: {named_tokens(tokens)}.")
    return Block(
        heading="Tokens that can never be predicted",
        paragraphs=tuple(paragraphs),
        command=command,
    )


def _verdicts(findings: tuple[Finding, ...]) -> Table:
    marks = {"proved": "good", "supported": "good", "refuted": "bad", "undecided": ""}
    return Table(
        columns=("statement", "verdict", "because"),
        rows=tuple(
            (finding.says, finding.verdict, sentence(finding.statement)) for finding in findings
        ),
        marks=tuple(marks[finding.verdict] for finding in findings),
    )


def _findings(record: HeadsStudy) -> tuple[str, ...]:
    behaviour, means = record.behaviour, record.keys.means
    chosen = sum(bool(head.looks_for) for head in behaviour.heads)
    lines = [
        f"{chosen} of {len(behaviour.heads)} heads of the trained model look for one kind of "
        f"key: {', '.join(f'{n} {WORDS[k]}' for k, n in behaviour.counts.items())}.",
        f"Key norms vary by {means['spread'].value:.0%} of their mean within a head; making "
        f"them equal moves {means['effect'].value:.0%} of the reading.",
    ]
    if record.trained is not None:
        norms, heads = record.trained.norms.findings, record.trained.heads.findings
        lines += [
            f"“With pre-norm, norms of keys cannot be too different” is {norms[0].verdict}; that "
            f"they are more alike than with post-norm is {norms[1].verdict}: {norms[1].statement}.",
            f"“More heads at the same width reduce the variance” is {heads[0].verdict} in trained "
            f"models: {heads[0].statement}.",
        ]
    lines.append(f"Output layer: {record.predictable.statement}.")
    return tuple(lines)
