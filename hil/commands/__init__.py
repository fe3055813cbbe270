"""The commands of `hil`: one module for each group, with the options and functions of its commands.

Imports of a command are inside its function, so that `hil --help` stays quick.
"""
