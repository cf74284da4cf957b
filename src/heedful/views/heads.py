"""The heads of a trained model, beside what the reasoning about one query says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from heedful.errors import InputError
from heedful.views.blocks import (
    Block,
    Bullets,
    Command,
    Formula,
    Group,
    Section,
    Span,
    Table,
    Text,
    facts,
    group,
    table,
)
from heedful.views.drawing import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    RED,
    figure_block,
    house_style,
    legend_below,
    new_figure,
)
from heedful.views.formatting import number, sentence

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from heedful.stats import Estimate
    from heedful.studies.heads.behaviour import Behaviour, HeadBehaviour
    from heedful.studies.heads.heads_study import Comparisons, HeadsStudy
    from heedful.studies.heads.keys import Keys
    from heedful.studies.heads.order import Probe
    from heedful.studies.heads.predictable import Predictable, TokenName
    from heedful.studies.heads.robustness import HeadAblation, Robustness
    from heedful.studies.heads.small_models import Finding, HeadCounts, PreNorm, Schemes

COLOURS = {
    "previous": BLUE,
    "self": "#5bb3c9",
    "first": GREY,
    "duplicate": PURPLE,
    "induction": RED,
    "source": GREEN,
    "copies": ORANGE,
    "averages": "#e3b565",
    "diffuse": "#c9cdd6",
}
"""A colour for each label: what a head looks for first, then how it reads."""
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


def heads_blocks(record: HeadsStudy) -> Iterator[Block]:
    """Yield the map, the table, and every finding."""
    yield subject_block(record)
    for part in record.seconds:
        yield from part_blocks(record, part)
    yield took_block(record)


def subject_block(record: HeadsStudy) -> Block:
    """Return the line about the model and what it read."""
    return Text(
        f"{record.model}: {record.layers} layers of {record.heads} heads, "
        f"{record.parameters:,} parameters; read {record.tokens:,} tokens "
        f"in {record.rows} rows of {record.text}."
    )


def part_blocks(record: HeadsStudy, part: str) -> Iterator[Block]:
    """Yield what one part of the study found."""
    if part == "heads" and record.behaviour is not None:
        yield from _named(record, record.behaviour)
    elif part == "keys" and record.keys is not None:
        yield _keys(record.keys)
    elif part == "robustness" and record.robustness is not None:
        yield from _robustness(record, record.robustness)
    elif part == "order" and record.probe is not None:
        yield from _order(record, record.probe)
    elif part == "tokens" and record.predictable is not None:
        yield from predictable_blocks(record.predictable)
    elif part == "small-models" and record.trained is not None:
        yield from trained_blocks(record.trained)


def took_block(record: HeadsStudy) -> Block:
    """Return how long each part took."""
    seconds = ", ".join(f"{name} {value:.1f} s" for name, value in record.seconds.items())
    return Text(f"Took: {seconds}.")


def _named(record: HeadsStudy, behaviour: Behaviour) -> Iterator[Block]:
    yield _map(record, behaviour)
    yield Text(
        "; ".join(f"{LETTERS[label]} {behaviour.words[label]}" for label in behaviour.counts)
    )
    clearest = _strongest(behaviour)
    if clearest.rows:
        yield clearest


def interval(estimate: Estimate | None, digits: int = 3) -> str:
    """Write an estimate as value ± half its interval."""
    if estimate is None:
        return "–"
    if not np.isfinite(estimate.error):
        return number(estimate.value, digits)
    return f"{number(estimate.value, digits)} ± {number(estimate.error, 2)}"


def strongest(behaviour: Behaviour) -> list[tuple[HeadBehaviour, str]]:
    """Return heads that look for something, the clearest first, and no label too often."""
    clearest = sorted(
        (head for head in behaviour.heads if head.looks_for),
        key=lambda head: -head.masses[head.looks_for].value,
    )
    counts: dict[str, int] = {}
    shown = []
    for head in clearest:
        label = head.looks_for
        counts[label] = counts.get(label, 0) + 1
        if counts[label] <= 3:
            shown.append((head, label))
    return shown[:MOST_HEADS]


def _map(record: HeadsStudy, behaviour: Behaviour) -> Block:
    grid = table("What each head does", "layer", *map(str, range(record.heads)), left=())
    for layer in range(record.layers):
        row = behaviour.heads[layer * record.heads : (layer + 1) * record.heads]
        grid.row(str(layer), *(Span(LETTERS[head.label], COLOURS[head.label]) for head in row))
    return grid


def _strongest(behaviour: Behaviour) -> Table:
    columns = ("layer.head", "looks for", "mass", "copies", "averages", "diffuse", "keys read")
    caption = "The clearest heads, with 95 % intervals."
    grid = table("The clearest heads", *columns, left=(0, 1), caption=caption)
    for head, label in strongest(behaviour):
        grid.row(
            head.name,
            behaviour.words[label],
            interval(head.masses[label], 2),
            *(f"{head.kinds[kind]:.0%}" for kind in ("copies", "averages", "diffuse")),
            interval(head.effective_keys, 2),
        )
    return grid


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


def _keys(keys: Keys) -> Table:
    grid = table("Keys", "", "mean over heads", left=(0,))
    for name, words in KEY_ROWS:
        if name in keys.means:
            grid.row(words, interval(keys.means[name]))
    grid.row("  keys read most that no query can copy", f"{keys.hidden} of {len(keys.attended)}")
    return grid


def _changes(robustness: Robustness) -> Table:
    return facts(
        "Robustness to key lengths 1 + ξ, ξ ~ N(0, ½)",
        ("c of a head, relative", interval(robustness.means["head"])),
        ("a layer, same lengths in all heads", interval(robustness.means["shared"])),
        ("a layer, own lengths in each head", interval(robustness.means["independent"])),
        ("loss, all layers (nats)", interval(robustness.everywhere)),
    )


def _robustness(record: HeadsStudy, robustness: Robustness) -> Iterator[Block]:
    yield _changes(robustness)
    yield Text(record.most_needed(robustness).text)
    if robustness.agreement is not None:
        yield Text(
            f"Gradient and measurement correlate by {robustness.agreement:.2f}, over "
            f"{robustness.measured} heads."
        )


def _order(record: HeadsStudy, probe: Probe) -> Iterator[Block]:
    best = probe.best
    lines = [
        ("with its mask: " if test.masked else "without a mask: ") + sentence(test.statement)
        for test in record.order
    ]
    depth = probe.r2.index(best)
    lines.append(
        f"Positions ({record.positions}): a linear probe on random tokens explains "
        f"{best.value:.0%} ± {100 * best.error:.0f} points of the position after "
        f"{depth} layers, and {probe.r2[-1].value:.0%} after the last."
    )
    yield Bullets(tuple(lines))


def predictable_blocks(record: Predictable) -> Iterator[Block]:
    """Yield which tokens can never be the most likely one."""
    yield Text(f"Tokens: {sentence(record.statement)} ({record.geometry}; {record.seconds:.1f} s.)")
    for name, tokens in (
        ("never", record.never_tokens),
        ("at most a tie", record.tie_tokens),
        ("open", record.open_tokens),
    ):
        if tokens:
            yield Text(f"{name}: {named_tokens(tokens)}", indent=2)


def named_tokens(tokens: Sequence[TokenName], most: int = 20) -> str:
    """Write tokens by name; ids without one as numbers."""
    shown = [repr(token.text) if token.text else f"id {token.id}" for token in tokens[:most]]
    return ", ".join(shown) + (", …" if len(tokens) > most else "")


def trained_blocks(record: Comparisons) -> Iterator[Block]:
    """Yield what the small models say."""
    yield _placements(record)
    yield _head_counts(record.heads)
    yield _schemes(record.positions)
    yield _verdicts((*record.norms.findings, *record.heads.findings, *record.positions.findings))


def _placements(record: Comparisons) -> Table:
    grid = table(
        f"Where the norm stands ({record.trainings} models, {record.steps} steps each)",
        *("norm", "loss", "spread of key norms", "largest / smallest", "reading moved", "centred"),
    )
    for variant in record.norms.variants:
        estimates = (variant.loss, variant.spread, variant.largest_ratio)
        effects = (variant.effect, variant.centred_effect)
        grid.row(variant.name, *map(interval, (*estimates, *effects)))
    return grid


def _head_counts(record: HeadCounts) -> Table:
    grid = table(
        f"More heads at width {record.width}",
        *("heads", "loss", "variance, same lengths", "own lengths", "single heads", "added loss"),
    )
    for count in record.counts:
        variances = (count.shared, count.independent, count.single)
        grid.row(str(count.heads), *map(interval, (count.loss, *variances, count.loss_change)))
    return grid


def _schemes(record: Schemes) -> Table:
    grid = table(
        "Positions",
        *("scheme", "loss", "R² of a probe, last layer", "off by, tokens"),
        *("equivariant, causal", "no mask"),
    )
    for scheme in record.schemes:
        tests = {test.masked: "yes" if test.holds else "no" for test in scheme.tests}
        estimates = (scheme.loss, scheme.last, scheme.mean_error[-1])
        grid.row(scheme.name, *map(interval, estimates), tests[True], tests[False])
    return grid


def _verdicts(findings: Sequence[Finding]) -> Table:
    tones = {"proved": "good", "supported": "good", "refuted": "bad", "undecided": ""}
    grid = table("Verdicts", "", "statement", left=(0, 1))
    for finding in findings:
        statement = f"{finding.says} {sentence(finding.statement)}"
        grid.row(finding.verdict, statement, tone=tones[finding.verdict])
    return grid


def heads_section(record: HeadsStudy, seconds: float, *, options: str = "") -> Section:
    """Return the part of the report about a heads study; `options` reproduce it."""
    command = f"heed study heads {record.model} {options}".rstrip()
    blocks: list[Group] = []
    if record.behaviour is not None:
        blocks.append(_behaviour(record, record.behaviour, command))
    if record.keys is not None:
        blocks.append(_key_norms(record.keys))
    if record.robustness is not None:
        blocks.append(_lengths(record, record.robustness))
    if record.trained is not None:
        trained = record.trained
        blocks += [_prenorm(trained), _more_heads(trained), _known_order(record, trained)]
    if record.predictable is not None:
        blocks.append(_tokens(record.predictable, command))
    return Section(
        name="heads",
        title="Heads of a trained model",
        lead=f"{record.layers} layers of {record.heads} heads, watched while they read "
        f"{record.tokens:,} tokens: do they do what the reasoning about one query says?",
        blocks=tuple(blocks),
        findings=record.conclusions,
        seconds=seconds,
    )


def _behaviour(record: HeadsStudy, behaviour: Behaviour, command: str) -> Group:
    parts = ", ".join(
        f"{count} {behaviour.words[label]}" for label, count in behaviour.counts.items()
    )
    clearest = _strongest(behaviour)
    return group(
        "What each head does",
        "For each position, a head copies (at least "
        f"{behaviour.thresholds['copied']:.0%} of its reading comes from one key), averages a "
        f"few keys (an effective number of at most {behaviour.thresholds['few']:.0f}), or reads "
        "diffusely. Colour tells what it looks for, where at least "
        f"{behaviour.thresholds['chosen']:.0%} of its mass is there, and how it reads otherwise; "
        "the number is the effective number of keys.",
        sentence(f"of {len(behaviour.heads)} heads: {parts}"),
        "Duplicates and induction are measured on random tokens written twice, where each token "
        "has exactly one earlier copy.",
        figure_block(
            heads_map(record),
            "map of heads",
            f"Every head of {record.model}, reading {record.text}.",
            command,
        ),
        clearest if clearest.rows else None,
    )


def _key_norms(keys: Keys) -> Group:
    means = keys.means
    paragraphs = [
        f"Norms of the keys of a head vary by {interval(means['spread'], 2)} of their mean. "
        "Giving all keys of a head one norm moves "
        f"{interval(means['effect'], 2)} of the reading. But a norm is not what softmax sees: the "
        "same vector may be added to every key without changing a weight. With the mean key taken "
        f"away first, equal norms move {interval(means['centred effect'], 2)}.",
    ]
    if "used" in means:
        paragraphs.append(
            "The margin of a key is its distance to the hull of the others in sight; a query of a "
            "given norm can give it at most that margin as a lead. The keys that are read most "
            f"get {interval(means['used'], 2)} of the lead that their query could give. Their lead "
            f"β is {interval(means['lead'], 2)}; orthonormal keys would need a scale of "
            f"{interval(means['equivalent beta'], 2)} for the same mass. "
            f"{keys.hidden} of {len(keys.attended)} lie inside the hull, where no "
            "query could copy them."
        )
    return group(
        "Keys in practice",
        Formula(
            r"\beta = \min_i \dfrac{q^\top (k_j - k_i)}{\sqrt{d}} \;\leq\; "
            r"\dfrac{\|q\|\,\delta_j}{\sqrt{d}}"
        ),
        paragraphs,
        figure_block(
            keys_figure(keys),
            "keys in practice",
            "Left: every head of keys, later layers darker. Right: the key that a "
            "query reads most, its lead against the best one possible.",
        ),
        _keys(keys),
    )


def _lengths(record: HeadsStudy, robustness: Robustness) -> Group:
    agreement = None
    if robustness.agreement is not None:
        agreement = (
            f"Gradient and measurement correlate by {robustness.agreement:.2f}, over "
            f"{robustness.measured} heads."
        )
    return group(
        "Uncertain lengths, and heads left out",
        "The lengths of all keys are multiplied by 1 + ξ, with ξ of variance "
        f"{robustness.variance:g}, as in the sheets. With every layer disturbed, the loss of "
        f"{interval(robustness.loss, 3)} rises by {interval(robustness.everywhere, 3)}.",
        record.most_needed(robustness).text,
        agreement,
        figure_block(
            robustness_figure(robustness),
            "robustness of heads",
            "Left: relative change of c for each head, and of what its layer adds. "
            "Right: the heads that matter most, measured and by the gradient.",
        ),
        _changes(robustness),
    )


def _prenorm(record: Comparisons) -> Group:
    norms = record.norms
    return group(
        "A footnote tested: norms of keys with pre-norm",
        "A sheet remarks that with layer normalisation before attention, norms of keys "
        "cannot be too different. The same small model was trained with the norm before, "
        "after, and with normalised queries and keys. In a post-norm model the stream "
        "between layers is normalised as well: only its first layer reads raw embeddings.",
        figure_block(
            norms_figure(norms),
            "placement of the norm",
            f"Means over {norms.variants[0].spread.count} seeds with 95 % intervals.",
        ),
        _placements(record),
        _verdicts(norms.findings),
    )


def _more_heads(record: Comparisons) -> Group:
    return group(
        "Do more heads reduce the variance?",
        "The summary of a sheet says so: other heads remain stable where one is disturbed. "
        "The same model was trained with 1, 2, 4 and 8 heads at one width, and the lengths "
        "of its keys were then made uncertain.",
        figure_block(
            counts_figure(record.heads),
            "heads and variance",
            f"Means over {record.heads.counts[0].loss.count} seeds with 95 % intervals.",
        ),
        _head_counts(record.heads),
        _verdicts(record.heads.findings),
    )


def _known_order(record: HeadsStudy, trained: Comparisons) -> Group:
    schemes = trained.positions
    probed = (
        f"The model above ({record.positions}) gives a linear probe "
        f"{interval(record.probe.best, 2)} of the variance of the position at its best depth."
        if record.probe is not None
        else None
    )
    return group(
        "What a model knows about order",
        "Without positions and without a mask, a trained model is a function of a set: "
        "shuffled tokens give equally shuffled outputs. The causal mask alone ends that: the "
        "first token sees one token, the second two.",
        probed,
        figure_block(
            order_figure(schemes),
            "order in hidden states",
            f"R² on rows that the probe never saw, {schemes.length} positions of "
            "random tokens, so that content says nothing about the position.",
        ),
        _schemes(schemes),
        _verdicts(schemes.findings),
    )


def _tokens(predictable: Predictable, command: str) -> Group:
    return group(
        "Tokens that can never be predicted",
        "The output layer compares the final state with one row a token. A row inside the hull "
        "of the others never wins, whatever the model has read: the same certificates that tell "
        "which keys can be copied.",
        predictable_blocks(predictable),
        Command(command),
    )


def heads_map(record: HeadsStudy) -> Figure:
    """Draw every head as a square: its label as colour, its effective number of keys inside."""
    from matplotlib.colors import to_rgb
    from matplotlib.patches import Patch, Rectangle

    behaviour = record.behaviour
    if behaviour is None:
        raise InputError(
            "--figure", "draws what each head does, which was left out", hint="add heads to --parts"
        )
    layers, heads = record.layers, record.heads
    turned = layers > heads
    columns, rows = (layers, heads) if turned else (heads, layers)
    with house_style():
        width = min(9.6, max(4.2, 0.62 * columns + 1.6))
        cell = (width - 1.2) / columns
        figure = new_figure(width, min(9.0, cell * rows * 0.92 + 1.5))
        axes = figure.add_subplot()
        for head in behaviour.heads:
            x, y = (head.layer, head.head) if turned else (head.head, head.layer)
            colour = COLOURS[head.label]
            axes.add_patch(Rectangle((x - 0.46, y - 0.46), 0.92, 0.92, color=colour, linewidth=0))
            axes.text(
                x,
                y,
                _short(head.effective_keys.value),
                ha="center",
                va="center",
                fontsize=max(5.0, min(9.0, 12 * cell)),
                color="#101418" if sum(to_rgb(colour)) > 1.55 else "white",
            )
        axes.set(
            xlim=(-0.6, columns - 0.4),
            ylim=(rows - 0.4, -0.6),
            xlabel="layer" if turned else "head",
            ylabel="head" if turned else "layer",
        )
        axes.set_xticks(range(columns), _every(columns))
        axes.set_yticks(range(rows), _every(rows))
        axes.tick_params(length=0)
        axes.set_aspect("equal")
        axes.grid(visible=False)
        for spine in axes.spines.values():
            spine.set_visible(False)
        shown = [label for label in COLOURS if label in behaviour.counts]
        figure.legend(
            [Patch(color=COLOURS[label]) for label in shown],
            [f"{behaviour.words[label]} ({behaviour.counts[label]})" for label in shown],
            loc="outside lower center",
            ncols=min(4, len(shown)) if width > 6 else 2,
            fontsize=8.5,
        )
        return figure


def keys_figure(keys: Keys) -> Figure:
    """Draw, for each head of keys, its spread against its effect, and leads against their best."""
    with house_style():
        figure = new_figure(8.4, 3.5)
        left, right = figure.subplots(1, 2)
        layers = np.array([one.layer for one in keys.norms])
        shades = 0.25 + 0.75 * layers / max(int(layers.max()), 1)
        for field, colour, label in (
            ("effect", BLUE, "keys as they are"),
            ("centred_effect", ORANGE, "mean key taken away"),
        ):
            spreads = [
                one.spread if field == "effect" else one.centred_spread for one in keys.norms
            ]
            effects = [getattr(one, field).value for one in keys.norms]
            left.scatter(spreads, effects, s=22, color=colour, alpha=shades, linewidths=0)
            left.scatter([], [], s=22, color=colour, label=label)
        left.set(
            xlabel="spread of key norms (std / mean)",
            ylabel="share of the reading moved",
            ylim=(0, None),
            xlim=(0, None),
        )
        left.set_title("Giving all keys of a head one norm")
        left.legend(fontsize=8.5)
        _leads(right, keys)
        return figure


def _leads(axes: Axes, keys: Keys) -> None:
    shown = [key for key in keys.attended if key.lead > 0 and key.best_lead > 0]
    best = [key.best_lead for key in shown]
    points = axes.scatter(
        best,
        [key.lead for key in shown],
        c=[key.mass for key in shown],
        cmap="viridis",
        vmin=0,
        vmax=1,
        s=18,
        linewidths=0,
    )
    if best:
        ends = [min(best) * 0.8, max(best) * 1.25]
        axes.plot(ends, ends, color=GREY, linewidth=0.9, linestyle="--")
        axes.figure.colorbar(points, ax=axes, label="α of the key")
        axes.set(xscale="log", yscale="log")
    axes.set(xlabel="largest lead a query of this norm can give", ylabel=r"lead $\beta$ it gives")
    axes.set_title("How well queries are aimed")


def robustness_figure(record: Robustness) -> Figure:
    """Draw what uncertain lengths do to heads and layers, and what leaving out heads does."""
    with house_style():
        figure = new_figure(8.4, 3.4)
        left, right = figure.subplots(1, 2)
        for layer in record.layers:
            left.plot(
                [layer.layer] * len(layer.heads), layer.heads, "o", color=GREY, ms=3.5, alpha=0.7
            )
        places = [layer.layer for layer in record.layers]
        _band(left, places, [one.shared for one in record.layers], BLUE, "layer, same lengths")
        _band(left, places, [one.independent for one in record.layers], GREEN, "layer, own lengths")
        left.plot([], [], "o", color=GREY, ms=3.5, label="single heads")
        left.set(xlabel="layer", ylabel=r"change, relative to $\|c\|$", ylim=(0, None))
        left.locator_params(axis="x", integer=True)
        left.set_title("Keys of uncertain length")
        left.legend(fontsize=8)
        _ablations(right, record)
        return figure


def _ablations(axes: Axes, record: Robustness) -> None:
    """Draw the heads that promise most: estimated hollow, measured filled."""

    def size(one: HeadAblation) -> float:
        return one.first_order if one.exact is None else one.exact.value

    shown = sorted(record.ablations, key=size, reverse=True)[:20]
    for place, one in enumerate(shown):
        axes.plot([place], [one.first_order], "o", color=GREY, ms=4, mfc="none")
        if one.exact is not None:
            axes.errorbar(
                place,
                one.exact.value,
                yerr=one.exact.error if np.isfinite(one.exact.error) else 0.0,
                fmt="o",
                color=BLUE,
                ms=4,
                linewidth=1.0,
            )
    axes.plot([], [], "o", color=BLUE, ms=4, label="measured")
    axes.plot([], [], "o", color=GREY, ms=4, mfc="none", label="by the gradient")
    axes.axhline(0, color=GREY, linewidth=0.8)
    names = [one.name for one in shown]
    axes.set_xticks(range(len(names)), names, rotation=90, fontsize=7.5)
    axes.set(xlabel="layer.head", ylabel="change of the loss (nats)")
    axes.set_title("Leaving out one head")
    axes.legend(fontsize=8)


def norms_figure(record: PreNorm) -> Figure:
    """Draw spread and effect of key norms for each placement of the norm."""
    with house_style():
        figure = new_figure(8.4, 2.9)
        panels = figure.subplots(1, 3)
        names = [variant.name for variant in record.variants]
        for axes, field, title in zip(
            panels,
            ("spread", "largest_ratio", "centred_effect"),
            ("spread of key norms", "largest / smallest key", "share of reading moved"),
            strict=True,
        ):
            for place, (variant, colour) in enumerate(
                zip(record.variants, (BLUE, ORANGE, GREEN), strict=True)
            ):
                estimate: Estimate = getattr(variant, field)
                axes.bar(place, estimate.value, color=colour, width=0.62, alpha=0.85)
                _whisker(axes, place, estimate)
            axes.set_xticks(range(len(names)), names, fontsize=8.5)
            axes.set_ylim(bottom=0)
            axes.set_title(title, fontsize=10)
        return figure


def counts_figure(record: HeadCounts) -> Figure:
    """Draw the variance and the change of the loss over the number of heads."""
    with house_style():
        figure = new_figure(8.4, 3.2)
        left, right = figure.subplots(1, 2)
        heads = [one.heads for one in record.counts]
        for field, colour, label in (
            ("single", GREY, "single heads"),
            ("shared", BLUE, "layer, same lengths in all heads"),
            ("independent", GREEN, "layer, own lengths in each head"),
        ):
            _band(left, heads, [getattr(one, field) for one in record.counts], colour, label)
        _band(right, heads, [one.loss_change for one in record.counts], RED, "")
        for axes in (left, right):
            axes.set_xscale("log", base=2)
            axes.set_xticks(heads, [str(count) for count in heads])
            axes.minorticks_off()
            axes.set(xlabel=f"heads at width {record.width}", ylim=(0, None))
        left.set(ylabel=r"variance, relative to $\|c\|^2$")
        left.set_title("Variance by uncertain lengths")
        right.set(ylabel="added loss (nats)")
        right.set_title("What it does to the loss")
        left.legend(fontsize=8)
        return figure


def order_figure(record: Schemes) -> Figure:
    """Draw how much of the position can be read at each depth, one line a scheme."""
    colours = {
        "none": RED,
        "sinusoidal": BLUE,
        "learned": GREEN,
        "rotary": ORANGE,
        "alibi": PURPLE,
    }
    with house_style():
        figure = new_figure(7.2, 3.3)
        axes = figure.add_subplot()
        for scheme in record.schemes:
            depths = np.arange(len(scheme.r2)) + 0.04 * (list(colours).index(scheme.name) - 2)
            _band(axes, depths.tolist(), list(scheme.r2), colours[scheme.name], scheme.name)
        count = len(record.schemes[0].r2)
        axes.set_xticks(
            range(count), ["embedding", *(f"after layer {depth}" for depth in range(1, count))]
        )
        axes.set(ylabel=r"$R^2$ of the position", ylim=(-0.08, 1.05))
        axes.set_title("What a linear probe reads of the position, from random tokens")
        legend_below(figure, axes, 5)
        return figure


def _band(
    axes: Axes, x: list[float] | list[int], estimates: list[Estimate], colour: str, label: str
) -> None:
    values = [one.value for one in estimates]
    errors = [one.error if np.isfinite(one.error) else 0.0 for one in estimates]
    axes.errorbar(
        x,
        values,
        yerr=errors,
        color=colour,
        marker="o",
        ms=4,
        linewidth=1.6,
        capsize=2.5,
        elinewidth=1.0,
        label=label,
    )


def _whisker(axes: Axes, place: int, estimate: Estimate) -> None:
    if np.isfinite(estimate.error):
        axes.errorbar(
            place, estimate.value, yerr=estimate.error, color=GREY, capsize=4, linewidth=1.4
        )


def _short(value: float) -> str:
    return f"{value:.1f}" if value < 9.95 else f"{value:.0f}"


def _every(count: int) -> list[str]:
    return [str(place) for place in range(count)]
