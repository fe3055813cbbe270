"""How every command that opens a recording is called, and how it refuses."""

from hil.__main__ import main

OPENERS = {
    "verify": ["verify", "{}"],
    "replay": ["replay", "{}"],
    "report": ["report", "{}"],
    "validate": ["report", "{}", "--validate"],
    "export": ["export", "{}"],
    "identify": ["identify", "{}", "--bootstrap", "0"],
    "recalibrate": ["recalibrate", "{}", "--with", "{record}"],
}


def words_of(opener, path, configs):
    record = configs.parent / "calibration/futek_9N.toml"
    return [word.format(path, record=record) for word in OPENERS[opener]]


def refused(words, capsys):
    """The one line with which a command refuses, exit code 2."""
    capsys.readouterr()
    assert main([str(word) for word in words]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1, said.err
    return said.err


def refused_lines(words, capsys):
    capsys.readouterr()
    assert main([str(word) for word in words]) == 2
    return capsys.readouterr().err.splitlines()
