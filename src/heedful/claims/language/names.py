"""Letters and names: Greek typed or spelled, subscripts, and characters that only look alike.

A Greek letter is a name of its own (`βk_a` is β times k_a) and is kept spelled: `alpha_1`
whether it was typed `α₁`, `α_1` or `alpha_1`. Two names are the same when their spelling is.
"""

from __future__ import annotations

import unicodedata

GREEK = {
    "α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "ε": "epsilon", "ζ": "zeta",
    "η": "eta", "θ": "theta", "ι": "iota", "κ": "kappa", "λ": "lambda", "μ": "mu",
    "ν": "nu", "ξ": "xi", "π": "pi", "ρ": "rho", "σ": "sigma", "τ": "tau",
    "υ": "upsilon", "φ": "phi", "χ": "chi", "ψ": "psi", "ω": "omega",
    "Γ": "Gamma", "Δ": "Delta", "Θ": "Theta", "Λ": "Lambda", "Ξ": "Xi", "Π": "Pi",
    "Σ": "Sigma", "Υ": "Upsilon", "Φ": "Phi", "Ψ": "Psi", "Ω": "Omega",
}  # fmt: skip
"""Greek letters and their spelling, one to one."""

_VARIANTS = {"ϵ": "ε", "ϑ": "θ", "ϰ": "κ", "ϱ": "ρ", "ϕ": "φ", "µ": "μ", "∆": "Δ", "Ω": "Ω"}
_LETTER_OF = {spelled: letter for letter, spelled in GREEK.items()}
SUBSCRIPTS = dict(zip("₀₁₂₃₄₅₆₇₈₉ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓ", "0123456789aehijklmnoprstuvx", strict=True))
SUPERSCRIPTS = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-", strict=True))
_SUBSCRIPT_DIGITS = dict(zip("0123456789", "₀₁₂₃₄₅₆₇₈₉", strict=True))
_SUPERSCRIPT_OF = {plain: raised for raised, plain in SUPERSCRIPTS.items()}


def plain(character: str) -> str:
    """Return the ordinary form of a character: `𝛼` and `ａ` are `α` and `a`.

    Only shapes of the same letter are unified. A raised or lowered letter means something
    else (a power, a subscript) and is left alone.
    """
    if character in _VARIANTS:
        return _VARIANTS[character]
    kind, _, _ = unicodedata.decomposition(character).partition(" ")
    if kind in ("<font>", "<wide>", "<narrow>"):
        simple = unicodedata.normalize("NFKC", character)
        return _VARIANTS.get(simple, simple)
    return character


def is_letter(character: str) -> bool:
    """Tell whether a name can begin with this character."""
    return character in GREEK or (character.isascii() and character.isalpha())


def is_plain_digit(character: str) -> bool:
    """Tell whether a character is one of 0 to 9 (other scripts have digits of their own)."""
    return character.isascii() and character.isdigit()


def subscripts(name: str) -> tuple[str, ...]:
    """Return the subscripts of a name.

    >>> subscripts("alpha_i"), subscripts("W_Q_1"), subscripts("beta")
    (('i',), ('Q', '1'), ())
    """
    return tuple(name.split("_")[1:])


def with_letters(name: str) -> str:
    """Return a name as one would write it by hand: Greek letters, lowered digits.

    >>> with_letters("alpha_1"), with_letters("mu_a"), with_letters("W_Q")
    ('α₁', 'μ_a', 'W_Q')
    """
    if name == "infinity":
        return "∞"
    head, *rest = name.split("_")
    written = _letter(head)
    for part in rest:
        if part.isdigit():
            written += "".join(_SUBSCRIPT_DIGITS[digit] for digit in part)
        else:
            written += "_" + _letter(part)
    return written


def raised(number: str) -> str:
    """Return a whole number as an exponent: "-1" becomes ⁻¹."""
    return "".join(_SUPERSCRIPT_OF[character] for character in number)


def describe(character: str) -> str:
    """Return a character with what it is, for those that cannot be told apart or seen."""
    name = unicodedata.name(character, "")
    code = f"U+{ord(character):04X}"
    if not character.isprintable() or unicodedata.combining(character):
        return f"the character {code}" + (f" ({name})" if name else "")
    if character.isascii():
        return f"`{character}`"
    return f"`{character}` ({code}{', ' + name if name else ''})"


def _letter(word: str) -> str:
    """Return a spelled Greek letter, with the digits after it, as the letter itself."""
    stem = word.rstrip("0123456789")
    return _LETTER_OF.get(stem, stem) + word[len(stem) :]
