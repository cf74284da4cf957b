"""The command line: a file for a verb and its neighbours, heavy imports inside the command."""
