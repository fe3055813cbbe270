"""A page of the documentation as a script: what it types, and what it says comes out.

A block marked `console` has lines `$ command`, each followed by what it prints; `...` stands for
anything, and a command with nothing below it must only succeed. A block marked `python` is run, and
so are the cells of a notebook. A block whose first line is a comment with a file's name is that
file. All of a page runs in one shell, in order.
"""

import doctest
import json
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt

import resident as resident_module

MARK = "--- end of command"
FILE = re.compile(r"^# (\S+\.(?:toml|py|csv|cff|yml))\n")
FOLDERS = (
    "docs", "docs/tutorial", "docs/how-to", "docs/explanation", "docs/recruitment",
    "docs/reference",
)  # fmt: skip
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
RUN, SHOWN = ("console", "python", "toml"), ("text", "mermaid", "bibtex")


@dataclass(frozen=True)
class Command:
    """One command of a page, on a line of it, and what it should print (None: anything)."""

    line: int
    text: str
    prints: str | None


def pages(root: Path) -> list[str]:
    """Every page of the documentation that has a command."""
    kinds = ("*.md", "*.ipynb")
    found = [page for folder in FOLDERS for kind in kinds for page in (root / folder).glob(kind)]
    return sorted(page.relative_to(root).as_posix() for page in found if commands_of(page))


def commands_of(page: Path) -> list[Command]:
    """Every command of a page, in order.

    Raises
    ------
    ValueError
        A block that nothing could run.
    """
    found: list[Command] = []
    if page.suffix == ".ipynb":  # all cells in one process, as its kernel runs them
        cells = json.loads(page.read_text(encoding="utf-8"))["cells"]
        code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
        return [Command(1, f"python - {_here(chr(10).join(code) + chr(10))}", None)]
    for token in MarkdownIt().parse(page.read_text(encoding="utf-8")):
        if token.type not in ("fence", "code_block") or token.map is None:
            continue
        language, line = token.info.strip(), token.map[0] + 1
        name = FILE.match(token.content)
        if language.startswith("{") or language in SHOWN:
            continue
        if name:
            path = shlex.quote(name[1])
            make = f"mkdir -p $(dirname {path}); cat > {path}"
            found.append(Command(line, f"{make} {_here(token.content)}", None))
        elif language == "console":
            found += _typed(token.content, line)
        elif language == "python":
            found.append(Command(line, f"python - {_here(token.content)}", None))
        else:
            raise ValueError(f"{page}:{line}: a block of '{language}' that no test runs")
    return found


def _here(text: str) -> str:
    return f"<<'END OF BLOCK'\n{text}END OF BLOCK"


def _typed(text: str, line: int) -> list[Command]:
    found = []
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        typed, _, prints = part.replace("\\\n", " ").partition("\n")
        found.append(Command(line, typed, prints if prints.strip() else None))
    return found


def differences(page: Path, folder: Path, resident: Path) -> list[str]:
    """Run a page in a folder; a text for every command that did not do what the page says.

    `hil` in the foreground and blocks of Python are asked of the process at the socket `resident`.
    In the background `hil` is a process of its own, which the page may kill; so is `hil simdaq`,
    which becomes the program that it runs.
    """
    commands = commands_of(page)
    ask = shlex.join([sys.executable, "-IS", resident_module.__file__, str(resident)])
    script = f'hil() {{ {ask} hil "$@"; }}\n'
    for c in commands:
        text = re.sub(r"^hil (?=simdaq|.*&( |$))", "command hil ", c.text)
        text = re.sub(r"^python -(?= <<)", f"{ask} python -", text)
        script += f'{text}\necho "{MARK} $?"\n'
    done = subprocess.run(
        ["bash", "-c", script + "\nkill $(jobs -p) 2> /dev/null; wait"],
        cwd=folder,
        env=os.environ | {"COLUMNS": "100", "TERM": "dumb", "NO_COLOR": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    outputs = re.findall(rf"(.*?){MARK} (\d+)\n", done.stdout, flags=re.DOTALL)
    assert len(outputs) == len(commands), done.stdout
    checker = doctest.OutputChecker()
    wrong = []
    for command, (printed, code) in zip(commands, outputs, strict=True):
        if command.prints is None:
            right = code == "0"
        else:
            right = checker.check_output(command.prints, printed, FLAGS)
        if not right:
            expected = "success" if command.prints is None else command.prints
            wrong.append(
                f"{page.name}:{command.line}: $ {command.text}\nexpected:\n{expected}\n"
                f"got (exit code {code}):\n{printed}"
            )
    return wrong
