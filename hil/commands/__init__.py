"""The commands of `hil`: a module a group, in each the options of its commands and what they do.

What a command needs is imported inside its function, so that `hil --help` stays quick.
"""
