"""The command line: a file for a verb and its neighbours.

It may use every other room, which is imported inside the command, so that `heed --help` is quick.
Begin with `main` (the list of verbs); `inputs` and `output` are what verbs share.
"""
