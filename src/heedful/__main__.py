"""`python -m heedful` is the same as `heed`."""

from heedful.cli.main import run

run()
