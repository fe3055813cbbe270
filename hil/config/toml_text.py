"""Says what is wrong with a line that is no TOML, in the words of whoever typed it."""

import re

from hil.errors import one_line

_AT = re.compile(r" \(at line (\d+), column (\d+)\)$")
_NUMBER = r"[-+]?\d+(?:\.\d+)?"
_KEY = r"""^\s*(?:[\w.-]+|"[^"]*"|'[^']*')\s*"""
_OPEN_QUOTE = re.compile(rf"""{_KEY}=\s*(?:"[^"]*|'[^']*)$""")
_OPEN_TEXT = re.compile(rf"""{_KEY}=\s*(\"{{3}}|'{{3}})(?:(?!\1).)*$""")
_CAUSES = (
    (re.compile("[“”„«»‘’]"), "typographic quotes: type straight ones, \" or '"),
    (re.compile("[−–—]\\s*[.\\d]"), "a typographic minus: type -"),
    (re.compile(rf"{_KEY}=\s*([-+]?\d{{1,3}}),(\d{{3}}\.\d+)"),
     r"a comma in a number: write \1\2"),
    (re.compile(rf"{_KEY}=\s*0[xX]"), "after 0x come digits 0 to 9 and a to f"),
    (re.compile(rf"{_KEY}=\s*{_NUMBER}[eE][-+]?(?!\d)"),
     "digits are missing after the e, as in 1e3"),
    (re.compile(rf"{_KEY}=\s*(None|null|nil|NULL)\b"), r"TOML has no \1: leave the key out"),
    (re.compile(r"^\s*([^\W\d]\w*)[ \t]+([\w -]*?\w)\s*=[^=]"),
     r"a key has no spaces: write \1_\2"),
    (re.compile(rf"{_KEY}=\s*({_NUMBER}),(\d+)\s*(?:#|$)"), r"a decimal comma: write \1.\2"),
    (re.compile(rf"{_KEY}=\s*({_NUMBER})\s*[^\W\d_][^=]*$"),
     r"a number has no unit, the key names it: write \1"),
    (re.compile(rf"{_KEY}=\s*(True|False|TRUE|FALSE)\b"), "true and false are written small"),
    (re.compile(rf"""{_KEY}=\s*"[^"']*\\"""),
     "a backslash in \"...\" begins a special character: use '...', or /"),
    (_OPEN_QUOTE, "a quote is missing at the end of the text"),
    (re.compile(rf"{_KEY}=\s*([^\W\d_][\w./-]*)\s*(?:#|$)"), r'text needs quotes: write "\1"'),
    (re.compile(rf"{_KEY}=\s*[-+]?(?:\.\d+|\d+\.)(?!\d)"),
     "a number has digits on both sides of its point"),
    (re.compile(rf"{_KEY}[^=]*$"), "a key and its value have = between them"),
    (re.compile(rf"{_KEY}=\s*(?:#|$)"), "the value is missing"),
    (re.compile(r"^\s*\[(?:\[?[^\]]*$|\[[^\]]*\](?!\]))"), "a ] is missing"),
    (re.compile(r"\{[^{}]*$"), "a table in { } stands on one line"),
    (_OPEN_TEXT, r"the text has no end: write \1 after it"),
    (re.compile(r"=\s*\["), "in a list, values have commas between them and a ] at the end"),
)  # fmt: skip

SHOWN = 60  # characters on each side of the mark
_TWICE = "this key or table is there twice"


def explained(text: str, error: Exception) -> str:
    """The line with a mark where reading stopped, and the usual cause, as part of a message."""
    message = one_line(str(error))
    lines = text.splitlines()
    if place := _AT.search(message):
        number, column = int(place[1]), int(place[2])
    else:  # at the end of the file: of a text that does not end, its line
        opened = (n for n, line in enumerate(lines, 2)
                  if _OPEN_QUOTE.search(line) or _OPEN_TEXT.search(line))  # fmt: skip
        number, column = next(opened, len(lines) + 1), 1
    line = lines[number - 1] if number <= len(lines) else ""
    if column == 1 and number > 1:  # what is missing is missed on the next line
        number, line = number - 1, lines[number - 2]
        column = len(line) + 1
    cause = _TWICE if "overwrite" in message or "twice" in message else _AT.sub("", message)
    for pattern, text_of in _CAUSES:
        if match := pattern.search(line):
            cause = match.expand(text_of)
            break
    rest = re.split(r"\s+#", line[column - 1 :])[0]
    before = line[: column - 1]
    before = f"... {before[-SHOWN:]}" if len(before) > SHOWN else before
    rest = f"{rest[:SHOWN]} ..." if len(rest) > SHOWN else rest
    shown = one_line(f"{before}»{rest}".strip())
    return f"line {number}: not valid TOML at »: {shown}: {cause}"
