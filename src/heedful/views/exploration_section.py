"""The first part of the report: attention explored, told from its record."""

from __future__ import annotations

from heedful.studies.exploration import Exploration
from heedful.views.drawing import inline_svg
from heedful.views.exploration_figures import (
    averaging_figure,
    heads_figure,
    hull_figure,
    noise_figure,
)
from heedful.views.formulas import formula_svg
from heedful.views.page import Block, Figure, Section, Table
from heedful.views.sequence_views import sequence_figure
from heedful.views.terminal import number


def exploration_section(record: Exploration, seconds: float) -> Section:
    """Tell the exploration."""
    return Section(
        name="attention",
        title="Attention, explored",
        lead="One query over n keys: what it can read, what it cannot, and what noise does to it.",
        blocks=(
            _operation(),
            _averaging(record),
            _copying(record),
            _noise(record),
            _heads(record),
            _sequence(record),
            _order(record),
        ),
        findings=_findings(record),
        seconds=seconds,
    )


def _operation() -> Block:
    return Block(
        heading="The operation",
        formula=formula_svg(
            r"c = \sum_i \alpha_i v_i, \qquad "
            r"\alpha_i = \dfrac{\exp(k_i^\top q)}{\sum_j \exp(k_j^\top q)}"
        ),
        paragraphs=(
            "A query q gives each key k a weight, and reads the average of the values under "
            "these weights. Everything below is a question about this one line, computed in "
            "double precision. The error of a design is the share of the reading that goes "
            "astray: whatever the values are, the output is off by at most that share of their "
            "diameter.",
        ),
        command="heed attend --n 4 --query 6 6 0 0",
    )


def _averaging(record: Exploration) -> Block:
    averaging, average = record.averaging, record.average
    certificate = average.certificate
    rows = tuple(
        (str(n), f"{averaging.unscaled[n]:.3f}", f"{averaging.needed[n]:.2f}")
        for n in averaging.needed
    )
    return Block(
        heading="Averaging two values",
        formula=formula_svg(r"\beta = \ln\dfrac{(n-m)(1-\varepsilon)}{m\,\varepsilon}"),
        paragraphs=(
            f"With perpendicular unit keys, the query k_a + k_b gives each of its two keys a "
            f"weight of {averaging.unscaled[10]:.2f} when there are ten keys, and "
            f"{averaging.unscaled[64]:.2f} when there are 64: it does not average them, it reads "
            "everything a little. A scale is needed, and it grows with the logarithm of the "
            "number of keys; the formula gives the smallest one for m of n keys and error ε.",
            f"Nor is β(k_a + k_b) the least query that does it. Pushing the other keys down as "
            f"well as pulling the two up reaches the same weights with a norm of "
            f"{number(average.norm)} instead of {number(certificate.textbook_norm)}; no shorter "
            f"query exists (proved: at least {number(certificate.norm_lower_bound)}).",
        ),
        figures=(
            Figure(
                svg=inline_svg(averaging_figure(averaging), "error over beta"),
                caption="The share of the reading that misses the two wanted values. The dotted "
                "line is the query without a scale; dots mark the smallest scale for 1 %.",
                command="heed design average --n 10 --d 16 --of 0 1 --tolerance 0.01",
            ),
        ),
        tables=(
            Table(
                columns=("keys n", "weight of each under k_a + k_b", "β for an error of 1 %"),
                rows=rows,
            ),
        ),
    )


def _copying(record: Exploration) -> Block:
    hidden = record.hidden.certificate
    return Block(
        heading="Which values can be copied at all",
        paragraphs=(
            "A query copies value j when k_j leads every other key along it, and such a "
            "direction exists exactly when k_j is a corner of the convex hull of the keys. A key "
            "inside the hull is an average of others, and its logit is that average of theirs: "
            "it can never lead.",
            hidden.statement,
            f"In a crowd this is the rule, not the exception: of 500 random keys in four "
            f"dimensions only {record.crowd.count} can be copied. The same question decides which "
            "tokens an output layer can ever predict.",
        ),
        figures=(
            Figure(
                svg=inline_svg(hull_figure(record), "keys and their hull"),
                caption="Six keys in the plane. The red ones lie inside; the dashed lines are the "
                "combination of corners that gives k₀, which proves that no query copies it.",
                command="heed design copy --keys "
                f"'{[[float(x) for x in row] for row in record.plane.tolist()]}' --of 0",
            ),
        ),
        command="heed copyable --keys gaussian --n 500 --d 4",
    )


def _noise(record: Exploration) -> Block:
    noise = record.noise
    rows = []
    for name, study in zip(noise.names, noise.studies, strict=True):
        exact, sampled = study.exact, study.sampled
        limit = None if study.limit is None else study.limit.failure_probability
        rows.append(
            (
                name,
                "–" if exact is None else f"{exact.std[0]:.4f}",
                f"{sampled.std[0]:.4f} ± {sampled.std_se[0]:.4f}",
                "–" if exact is None else f"{exact.failure_probability:.4f}",
                "–" if limit is None else f"{limit:.4f}",
            )
        )
    return Block(
        heading="Noisy keys: one head, two heads, or one that looks away",
        formula=formula_svg(r"k_a \sim N(\mu_a,\ \frac{1}{2}\mu_a\mu_a^\top)"),
        paragraphs=(
            "One key keeps its direction but varies in length. A single head at μ_a + μ_b then "
            "swings between the two values, as every course sheet says. Two heads, one at each "
            "key, are steadier, but they are not steady: whenever the noisy key turns around, "
            "head a reads all the other values instead. That happens with probability "
            "Φ(−√2) = 0.0786 however large the scale is.",
            "What no sheet says: one head is enough. A query that is perpendicular to both keys "
            "and pushes all the others down never feels the noise, because the noise moves k_a "
            "along a direction that this query does not look at. Several heads are not what "
            "makes attention robust here; looking away from the noise is.",
        ),
        figures=(
            Figure(
                svg=inline_svg(noise_figure(noise), "alpha over draws"),
                caption="The weight of the noisy key over 4,000 draws of it. It should be ½.",
            ),
        ),
        tables=(
            Table(
                columns=(
                    "queries",
                    "std of α_a, exact",
                    "sampled",
                    "P(c off by > 0.1)",
                    "the same as β → ∞",
                ),
                rows=tuple(rows),
                caption="Ten keys, norm 50 a head (√2 times that for the sum).",
            ),
        ),
        command=noise.commands[1],
    )


def _heads(record: Exploration) -> Block:
    heads = record.heads
    return Block(
        heading="The best heads, searched for",
        paragraphs=(
            "The machine may choose its queries freely within a norm. "
            + heads.certificate.statement[:1].upper()
            + heads.certificate.statement[1:]
            + ".",
            "Looking away works because one direction is noisy and the others are not. When "
            "every key varies in length, no direction is safe, and there several heads do help: "
            f"the best single head found errs by {number(record.everywhere[1], 3)}, two heads by "
            f"{number(record.everywhere[2], 3)}.",
        ),
        figures=(
            Figure(
                svg=inline_svg(heads_figure(record), "error of heads"),
                caption="Root mean square distance of the output from the average of the two "
                "values. More heads at the same norm buy little; the right direction buys all.",
                command="heed design heads --n 10 --d 16 --of 0 1 --noisy 0 --variance 0.5 "
                "--heads 2 --norm 50 --curves",
            ),
        ),
    )


def _sequence(record: Exploration) -> Block:
    design = record.sequence
    expressions = design.expressions
    return Block(
        heading="Keys, queries and values from one sequence",
        paragraphs=(
            "Four perpendicular vectors u_a … u_d; the sequence x₀ = u_d + u_b, x₁ = u_a, "
            "x₂ = u_c + u_b; wanted: c₀ ≈ u_b − u_c and c₁ ≈ u_b. Without matrices: "
            + record.without_matrices.certificate.statement
            + ".",
            "Adding another vector to x₁ does not help, and not for the reason usually given: "
            + record.additions[-1].statement
            + ".",
            f"With matrices it is easy: K = {expressions['K']}, Q = {expressions['Q']}, "
            f"V = {expressions['V']}. The error is {number(design.error)} of the outputs' size, "
            f"and {number(design.beta)} is the smallest scale that reaches a mass of "
            f"{number(design.mass)}.",
        ),
        figures=(
            Figure(
                svg=inline_svg(sequence_figure(design), "matrices"),
                caption="The matrices found, and the weights they give.",
                command="heed design kqv",
            ),
        ),
    )


def _order(record: Exploration) -> Block:
    rows, marks = [], []
    for name, found in record.order.items():
        rows.append(("yes" if found.holds else "no", name, found.statement))
        marks.append("good" if found.holds else "bad")
    rows.append(("no", "self-attention, features permuted", record.features.statement))
    marks.append("bad")
    return Block(
        heading="Does a layer know the order of its tokens?",
        formula=formula_svg(r"f(PX) = P\,f(X)"),
        paragraphs=(
            "A layer that respects every permutation of its tokens cannot know their order. "
            "Self-attention and the feed-forward layer do respect it (the claims part proves "
            "it); a causal mask or position embeddings break it. Writing the permutation on the "
            "other side, XΠ, permutes features instead of tokens, and there it fails.",
        ),
        tables=(
            Table(
                columns=("respected", "layer", "what was found"),
                rows=tuple(rows),
                marks=tuple(marks),
            ),
        ),
        command="heed properties --all",
    )


def _findings(record: Exploration) -> tuple[str, ...]:
    averaging, average = record.averaging, record.average
    one, two, away = record.noise.studies
    assert one.exact is not None
    assert two.exact is not None
    assert two.limit is not None
    assert away.exact is not None
    shorter = 1 - (average.norm or 0.0) / (average.certificate.textbook_norm or 1.0)
    return (
        f"The query k_a + k_b does not average two of ten values: each gets a weight of "
        f"{averaging.unscaled[10]:.2f}. It takes a scale of {averaging.needed[10]:.2f} for an "
        f"error of 1 %, and {averaging.needed[1000]:.2f} among a thousand keys.",
        "A single head can be as robust as one likes: a query that looks away from the noisy "
        f"direction has a standard deviation of {away.exact.std[0]:.3f}. Only when every key is "
        f"noisy do two heads help: they err by {number(record.everywhere[2], 2)} instead of "
        f"{number(record.everywhere[1], 2)}.",
        f"The textbook query β(k_a + k_b) is not the shortest: pushing the others away does the "
        f"same with a norm {shorter:.0%} smaller, and that is proved to be the least.",
        f"With one noisy key, two heads are steadier than one (standard deviation "
        f"{two.exact.std[0]:.3f} instead of {one.exact.std[0]:.3f}), but they still fail in "
        f"{two.limit.failure_probability:.1%} of the draws however large the scale.",
        f"Of 500 random keys in four dimensions only {record.crowd.count} can be copied; for the "
        "others there is a proof that no query can.",
        "The four-vector problem has a solution with K, Q and V and none without: every output "
        "would have to leave the convex hull of its inputs.",
    )
