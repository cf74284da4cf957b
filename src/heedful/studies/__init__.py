"""Studies: plans that are trained and measured, and end in one record.

They use every room below; views show their records, and `heed study` and `heed lab` run them.
Begin with `exploration`, which trains nothing; then `lab`, and `knowledge_study` as an example.
"""

from heedful.studies.exploration import Exploration, explore

__all__ = ["Exploration", "explore"]
