"""Studies: recipes that end in a record."""

from heedful.studies.exploration import Exploration, explore

__all__ = ["Exploration", "explore"]
