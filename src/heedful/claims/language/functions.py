"""The functions of the language: the one table of names, arities and meanings.

The evaluators implement what stands here; the parser accepts nothing else, except functions
that a sheet defines itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["value", "statistic", "binder", "predicate"]
"""What a call gives: a value; a number over all draws (takes `given`); a value over every
value of an index; or a statement that is true or false by itself."""

Arity: TypeAlias = int | tuple[int, int]
"""How many arguments: exactly, or from … to …"""

MANY = 16
"""The most arguments of a function that takes as many as one likes."""


@dataclass(frozen=True, slots=True)
class Function:
    """One function that formulas may call."""

    name: str
    forms: tuple[str, ...]
    """How it is written, one for each number of arguments."""
    least: int
    most: int
    kind: Kind
    says: str
    """What it comes to, in a line."""

    @property
    def arity(self) -> str:
        """The number of arguments in words."""
        if self.least == self.most:
            return f"{self.least} argument{'s' if self.least != 1 else ''}"
        if self.most >= MANY:
            return f"{self.least} or more arguments"
        between = "or" if self.most == self.least + 1 else "to"
        return f"{self.least} {between} {self.most} arguments"


_TABLE: dict[Kind, tuple[tuple[str, str], ...]] = {
    "value": (
        ("exp(x)", "e to the power x, entry by entry"),
        ("ln(x)", "natural logarithm, entry by entry"),
        ("log(x)", "natural logarithm, the same as ln"),
        ("sqrt(x)", "square root, entry by entry; also √x"),
        ("abs(x)", "absolute value, entry by entry; also |x|"),
        ("sin(x)", "sine of an angle in radians"),
        ("cos(x)", "cosine of an angle in radians"),
        ("tanh(x)", "hyperbolic tangent, entry by entry"),
        ("sigmoid(x)", "1 / (1 + exp(-x)), entry by entry"),
        ("relu(x)", "the larger of x and 0, entry by entry"),
        ("sign(x)", "-1, 0 or 1, entry by entry"),
        ("floor(x)", "the largest whole number not above x"),
        ("softmax(x)", "exp(x) scaled to sum to 1; of a matrix, each row"),
        ("softmax_rows(A)", "softmax of each row of a matrix"),
        ("norm(x); norm(x, p)", "Euclidean (Frobenius) norm, or the p-norm; also ‖x‖, ‖x‖_p"),
        ("entropy(p)", "-Σ p ln p of a vector, in nats"),
        ("mean(x)", "the average of the entries of a vector"),
        ("argmax(x)", "which entry is largest, counted from 1"),
        ("transpose(A)", "the transpose; also A^T"),
        ("trace(A)", "the sum of the diagonal"),
        ("rank(A)", "the rank of a matrix"),
        ("det(A)", "the determinant of a matrix"),
        ("inv(A)", "the inverse of a matrix; also A^-1"),
        ("diag(x)", "the matrix with x on its diagonal; of a matrix, its diagonal"),
        ("outer(x, y)", "the matrix x y^T"),
        ("dot(x, y)", "the inner product x^T y"),
        ("hadamard(x, y)", "the product entry by entry"),
        ("ones(n); ones(m, n)", "a vector, or a matrix, of ones"),
        ("zeros(n); zeros(m, n)", "a vector, or a matrix, of zeros"),
        ("eye(n)", "the n by n identity matrix"),
        ("onehot(i, n)", "the unit vector of length n with a 1 at entry i, from 1"),
        ("concat(x, y, ...)", "vectors joined end to end; matrices side by side"),
        ("stack(x, y, ...)", "vectors as the rows of a matrix; matrices one above another"),
        ("rows(x, y, ...)", "the matrix with these vectors as its rows"),
        ("attention(q); attention(q, K); attention(q, K, V)", "what a query reads: Σ α_i v_i"),
        ("weights(q); weights(q, K)", "the attention weights α of a query"),
        ("selfattention(X); selfattention(X, K, Q, V)", "what every row of X reads from all rows"),
        ("causal(T)", "the mask in which position t sees positions up to t"),
        ("mass(i, ...)", "the weight on a set of keys: alpha_i + …"),
        ("tv(p, q)", "total variation distance: Σ |p - q| / 2"),
        ("kl(p, q)", "Kullback-Leibler divergence: Σ p ln(p / q), in nats"),
        ("layernorm(x)", "x minus its mean, divided by its standard deviation"),
        ("rmsnorm(x)", "x divided by the root of its mean square"),
        ("phi(t); phi(t, d)", "the position embedding of position t, of width d"),
        ("rotate(x, t)", "x turned by the rotary angles of position t"),
        ("Phi(x)", "the normal distribution function"),
        ("distance(j)", "how far k_j is from the convex hull of the other keys"),
        ("round16(x)", "x rounded to float16"),
        ("roundbf16(x)", "x rounded to bfloat16"),
    ),
    "statistic": (
        ("E(x)", "the expectation over the draws; E(x given y)"),
        ("P(event)", "the probability of a statement; P(event given y)"),
        ("var(x)", "the variance (the sum of all entries' variances)"),
        ("std(x)", "the square root of the variance"),
        ("cov(x, y)", "the covariance of two values"),
        ("quantile(x, p)", "what x stays below with probability p"),
    ),
    "binder": (
        ("sum(x); sum(x, i)", "the sum of the entries, or over an index: sum(alpha_i, i != a)"),
        ("prod(x); prod(x, i)", "the product of the entries, or over an index"),
        ("max(x); max(x, i)", "the largest entry, or over an index; also max(x, y)"),
        ("min(x); min(x, i)", "the smallest entry, or over an index; also min(x, y)"),
    ),
    "predicate": (
        ("hull(j)", "k_j is a vertex of the convex hull of the keys"),
        ("copyable(j)", "some query brings alpha_j as close to 1 as one likes"),
    ),
}


def _function(kind: Kind, written: str, says: str) -> Function:
    forms = tuple(written.split("; "))
    counts = [form.count(",") + 1 for form in forms]
    open_ended = "..." in written
    # `concat(x, y, ...)` needs the two that are named; the dots stand for none or more.
    least, most = min(counts) - int(open_ended), MANY if open_ended else max(counts)
    return Function(forms[0].partition("(")[0], forms, least, most, kind, says)


FUNCTIONS: Mapping[str, Function] = MappingProxyType(
    {
        function.name: function
        for kind, rows in _TABLE.items()
        for function in (_function(kind, written, says) for written, says in rows)
    }
)
"""Every built-in function by name."""

ALSO_NAMES = frozenset({"E", "P", "phi", "Phi"})
"""Functions whose name may also stand alone for a value: P X, X + Phi."""


def declared(name: str, arity: Arity) -> Function:
    """Return the entry of a function that a sheet defines."""
    least, most = (arity, arity) if isinstance(arity, int) else arity
    written = ", ".join(f"x{place + 1}" for place in range(most)) if most > 1 else "x"
    return Function(name, (f"{name}({written})",), least, most, "value", "defined by the sheet")


def describe_functions() -> tuple[tuple[str, str, str], ...]:
    """Return the rows of the reference table: how it is written, its kind, what it gives.

    >>> describe_functions()[0]
    ('exp(x)', 'value', 'e to the power x, entry by entry')
    """
    return tuple((", ".join(f.forms), f.kind, f.says) for f in FUNCTIONS.values())
