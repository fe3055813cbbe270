"""Mutation testing of what may never be wrong: `./mutants [MODULE...]`.

`tests/mutants.toml` lists the modules, with the files that are changed and the tests that must
notice. Cosmic Ray makes the changes, one at a time, in a copy of the tree; three operators are
our own. Every mutant is tested in a fork of a process that has the libraries but nothing of this
project, at first by the tests that reach the changed line, then by the rest. Numba is switched
off, so that the changed code runs and not what a cache keeps of it. The result of each module goes
to `docs/slow-tests/mutants/`, with every survivor; `tests/equivalent_mutants.toml` says why a
survivor changes nothing that matters.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import datetime
import difflib
import importlib.util
import os
import pickle
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
CONFIG = ROOT / "tests" / "mutants.toml"
EQUIVALENT = ROOT / "tests" / "equivalent_mutants.toml"
RESULTS = ROOT / "docs" / "slow-tests" / "mutants"
COPIED = ("calibration", "configs", "docs", "examples", "firmware", "gui", "hil", "runs", "scripts",
          "simdaq", "tests", "pyproject.toml", "README.md", "ARCHITECTURE.md")  # fmt: skip
# A mutant may be slower than what it was made of, and the machine busy. Only a mutant that never
# ends comes to these limits.
CPU_SHARE_MAX, CPU_SPARE_S = 4, 6
WALL_SHARE_MAX, WALL_SPARE_S = 20, 60
WAYS = (("timeout", "by time"), ("crashed", "by a crash"))


@dataclass(frozen=True)
class Module:
    """What is changed, and what has to notice."""

    name: str
    files: list[str]
    tests: list[str]
    sample: int = 200
    compiled: bool = False
    build: list[str] = field(default_factory=list)  # a mutant that it refuses is none
    changes: list[tuple[str, str, str]] = field(default_factory=list)  # file, text, new text
    without: list[str] = field(default_factory=list)  # fixtures whose tests are left out
    slowest_s: float = 1.0


@dataclass(frozen=True)
class Mutant:
    """One change of one file."""

    file: str
    operator: str
    line: int
    text: str
    diff: tuple[str, str]


# ---- what is changed


def leave_out() -> type:
    """An operator of Cosmic Ray that leaves out a statement with an effect outside its block."""
    import parso
    from cosmic_ray.operators.operator import Operator

    def has_effect(node: Any) -> bool:
        if node.type == "expr_stmt":
            target, operator = node.children[0], node.children[1]
            augmented = getattr(operator, "type", "") == "operator" and operator.value != "="
            return augmented or target.type in ("power", "atom_expr")
        if node.type in ("atom_expr", "power", "await_expr"):
            return node.children[-1].type == "trailer" and node.children[-1].children[0] == "("
        return node.type in ("raise_stmt", "del_stmt") or node == "raise"

    class LeaveOut(Operator):
        def mutation_positions(self, node: Any) -> Iterator[Any]:
            if node.type == "simple_stmt" and has_effect(node.children[0]):
                yield node.children[0].start_pos, node.children[0].end_pos

        def mutate(self, node: Any, index: int) -> Any:
            first = node.get_first_leaf()
            node.children[0] = parso.python.tree.Keyword("pass", first.start_pos, first.prefix)
            return node

        @classmethod
        def examples(cls) -> tuple[()]:
            return ()

    return LeaveOut


def unlimited() -> type:
    """An operator of Cosmic Ray: the first argument instead of min, max, clip and abs."""
    import parso
    from cosmic_ray.operators.operator import Operator

    names = ("abs", "min", "max", "np.abs", "np.minimum", "np.maximum", "np.clip")

    class Unlimited(Operator):
        def mutation_positions(self, node: Any) -> Iterator[Any]:
            if node.type in ("atom_expr", "power") and len(node.children) > 1:
                *called, arguments = node.children
                name = "".join(child.get_code().strip() for child in called)
                if name in names and len(arguments.children) == 3:
                    several = getattr(arguments.children[1], "type", "") == "arglist"
                    if several or name.endswith("abs"):
                        yield node.start_pos, node.end_pos

        def mutate(self, node: Any, index: int) -> Any:
            inside = node.children[-1].children[1]
            first = inside.children[0] if inside.type == "arglist" else inside
            prefix = node.get_first_leaf().prefix
            return parso.python.tree.Name(f"({first.get_code().strip()})", node.start_pos, prefix)

        @classmethod
        def examples(cls) -> tuple[()]:
            return ()

    return Unlimited


def one_sided() -> type:
    """An operator of Cosmic Ray that drops one side of `low <= x <= high`, `a and b`, `a or b`."""
    import parso
    from cosmic_ray.operators.operator import Operator

    class OneSided(Operator):
        def mutation_positions(self, node: Any) -> Iterator[Any]:
            if node.type == "comparison" and len(node.children) > 3:
                yield from [(node.start_pos, node.end_pos)] * 2
            if node.type in ("and_test", "or_test"):
                yield from [(node.start_pos, node.end_pos)] * (len(node.children) // 2 + 1)

        def mutate(self, node: Any, index: int) -> Any:
            parts = list(node.children)
            if node.type == "comparison":
                parts = parts[2:] if index == 0 else parts[:-2]
            else:
                del parts[max(2 * index - 1, 0) : max(2 * index - 1, 0) + 2]
            text = "".join(part.get_code() for part in parts).strip()
            return parso.python.tree.Name(text, node.start_pos, node.get_first_leaf().prefix)

        @classmethod
        def examples(cls) -> tuple[()]:
            return ()

    return OneSided


def mutants_of_python(file: str, names: list[str]) -> Iterator[Mutant]:
    """Mutants of a Python file by these operators of Cosmic Ray, and our own."""
    import cosmic_ray.plugins
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.mutating import mutate_code

    source = (ROOT / file).read_text(encoding="utf-8")
    operators = {name: cosmic_ray.plugins.get_operator(f"core/{name}") for name in names}
    operators |= {"LeaveOut": leave_out(), "Unlimited": unlimited(), "OneSided": one_sided()}
    lines, left_alone = source.splitlines(), list(_left_alone(ast.parse(source)))
    for name, kind in operators.items():
        positions = [p for n in ast_nodes(get_ast(source)) for p in kind().mutation_positions(n)]
        for occurrence, (start, _) in enumerate(positions):
            names_only = lines[start[0] - 1][start[1] :].startswith("*,")  # of a def's parameters
            if names_only or any(first <= start < last for first, last in left_alone):
                continue
            try:
                text = mutate_code(source, kind(), occurrence)
            except AttributeError:  # Cosmic Ray replaces an exception only where it is one name
                if name != "ExceptionReplacer":
                    raise
                continue
            if text is not None and text != source:
                yield Mutant(file, name, start[0], text, _diff(source, text))


def _left_alone(tree: ast.Module) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Where a change is none: annotations, decorators of compilation, `strict` of `zip`."""
    for node in ast.walk(tree):
        found: list[ast.expr | None] = []
        if isinstance(node, ast.FunctionDef):
            found = [node.returns, *node.decorator_list]
        elif isinstance(node, ast.ClassDef):
            found = list(node.decorator_list)
        elif isinstance(node, ast.arg | ast.AnnAssign):
            found = [node.annotation]
        elif isinstance(node, ast.keyword) and node.arg == "strict":
            found = [node.value]
        for part in found:
            if part is not None:
                end = (part.end_lineno or part.lineno, part.end_col_offset or 0)
                yield (part.lineno, part.col_offset), end
        guards_types = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        if guards_types:
            yield (node.lineno, 0), (node.end_lineno or node.lineno, 9999)


C_TOKENS = {">": (">=", "<="), "<": ("<=", ">="), ">=": (">", "<"), "<=": ("<", ">"),
            "==": ("!=",), "!=": ("==",), "&&": ("||",), "||": ("&&",), "+": ("-",), "-": ("+",),
            "&": ("|",), "|": ("&",), "<<": (">>",), ">>": ("<<",), "+=": ("-=",), "-=": ("+=",),
            "true": ("false",), "false": ("true",)}  # fmt: skip


def mutants_of_c(file: str) -> Iterator[Mutant]:
    """Mutants of a C file: operators turned, statements with an effect left out."""
    source = (ROOT / file).read_text(encoding="utf-8")
    bare = re.sub(
        r"/\*.*?\*/|//[^\n]*|^[ ]*#[^\n]*|\"[^\"\n]*\"",
        lambda m: re.sub(r"[^\n]", " ", m[0]),
        source,
        flags=re.DOTALL | re.MULTILINE,
    )
    token = re.compile(r"(?<= )(>=|<=|==|!=|&&|\|\||<<|>>|\+=|-=|[<>+&|-])(?= )|\b(true|false)\b")
    places = [(m.span(), new, m[0]) for m in token.finditer(bare) for new in C_TOKENS[m[0]]]
    declared = r"(?:static |const |struct |u?int\d+_t |bool |enum )"
    kept = rf"(?!return|for|if|else|while|case|default|break|{declared})"
    statement = re.compile(rf"(?<=[{{}};\n])[ \n]+({kept}[\w*][^{{}};]*;)")
    for m in statement.finditer(bare):
        if re.match(r"[\w>.\-\[\] *&+]+(?: [|&+\-]?= |\()|.*(?:\+\+|--)", m[1]):
            places.append((m.span(1), ";", "LeaveOut"))
    for (start, end), new, name in places:
        text = source[:start] + new + source[end:]
        line = source.count("\n", 0, start) + 1
        yield Mutant(file, f"{name} -> {new}", line, text, _diff(source, text))


def _diff(source: str, text: str) -> tuple[str, str]:
    """The changed lines, before and after."""
    diff = list(difflib.ndiff(source.splitlines(), text.splitlines()))
    before = " ".join(line[2:].strip() for line in diff if line.startswith("- "))
    after = " ".join(line[2:].strip() for line in diff if line.startswith("+ "))
    return before, after


# ---- one test run, in a fork


class Chosen:
    """A pytest plugin: only these tests, in this order, and how long each takes."""

    def __init__(
        self, order: list[str] | None, coverage: Any = None, without: Iterable[str] = ()
    ) -> None:
        self._order, self._coverage, self._without = order, coverage, set(without)
        self.taken_s: dict[str, float] = Counter()
        self.failed: set[str] = set()
        self.skipped: set[str] = set()

    def pytest_collection_modifyitems(self, config: Any, items: list[Any]) -> None:
        items[:] = [i for i in items if not self._without & {*i.fixturenames}]
        if self._order is not None:
            at = {name: i for i, name in enumerate(self._order)}
            config.hook.pytest_deselected(items=[i for i in items if i.nodeid not in at])
            items[:] = sorted((i for i in items if i.nodeid in at), key=lambda i: at[i.nodeid])

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        if self._coverage is not None:
            self._coverage.switch_context(nodeid)
        self._started_s = time.process_time()

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self.taken_s[nodeid] = time.process_time() - self._started_s

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self.failed.add(report.nodeid)
        if report.skipped:
            self.skipped.add(report.nodeid)


def in_fork(action: Any, cpu_s: float, wall_s: float, log: Path) -> tuple[str, Any]:
    """Call it in a process of its own; `ended` and its result, or `timeout`, or `crashed`."""
    answer = log.with_suffix(".answer")
    answer.unlink(missing_ok=True)
    child = os.fork()
    if child == 0:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CPU, (int(cpu_s) + 1, int(cpu_s) + 2))
        with log.open("wb") as out:
            os.dup2(out.fileno(), 1)
            os.dup2(out.fileno(), 2)
        try:
            answer.write_bytes(pickle.dumps(action()))
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
        finally:
            os._exit(0)
    until_s = time.monotonic() + wall_s
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        late = time.monotonic() > until_s
        if done or late:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)  # with whatever the tests have started
            if not done:
                os.waitpid(child, 0)
            break
        time.sleep(0.01)
    if late or (os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL)):
        return "timeout", None
    return ("ended", pickle.loads(answer.read_bytes())) if answer.exists() else ("crashed", None)


def run_pytest(words: Iterable[str], plugin: Chosen) -> int:
    import pytest

    quiet = ["-q", "--no-header", "--tb=line", "-p", "no:cacheprovider"]
    quiet += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # of libraries loaded before
    return int(pytest.main([*quiet, *words], plugins=[plugin]))


# ---- a module


class Bed:
    """A copy of the tree in which the mutants of one module are tested."""

    def __init__(self, module: Module, where: Path) -> None:
        self._module, self._where = module, where
        for name in COPIED:
            source, copy = ROOT / name, where / name
            if source.is_dir():
                shutil.copytree(source, copy, symlinks=True)
            elif source.exists():
                shutil.copy2(source, copy)
        (where / "tmp").mkdir()
        os.chdir(where)
        os.environ["PYTHONPATH"] = f"{where}:{where / 'gui'}"
        os.environ |= {
            "TMPDIR": str(where / "tmp"), "QT_QPA_PLATFORM": "offscreen",
            "OPENBLAS_NUM_THREADS": "1",
        }  # fmt: skip
        if not module.compiled:
            os.environ["NUMBA_DISABLE_JIT"] = "1"
        sys.path[:0] = [str(where), str(where / "gui")]
        tempfile.tempdir = str(where / "tmp")
        self._log = where / "log.txt"
        self._baseline()

    def _baseline(self) -> None:
        """Time every test and find the lines that it reaches; those that fail are left out."""
        module, where = self._module, self._where

        def look() -> dict[str, Any]:
            import coverage

            files = [str(where / file) for file in module.files]
            watch = coverage.Coverage(data_file=None, include=files, config_file=False)
            watch.start()
            plugin = Chosen(None, watch, module.without)
            code = run_pytest(module.tests, plugin)
            watch.stop()
            data = watch.get_data()
            python = [] if module.build else module.files
            reached = {f: data.contexts_by_lineno(str(where / f)) for f in python}
            third = [
                name
                for name, loaded in list(sys.modules.items())
                if "site-packages" in (getattr(loaded, "__file__", None) or "")
                and not name.startswith(("_pytest", "coverage", "conftest"))
            ]
            return vars(plugin) | {
                "reached": reached, "libraries": third, "code": code, "_coverage": None,
            }  # fmt: skip

        outcome, found = in_fork(look, 3600, 3600, self._log)
        if outcome != "ended" or not found["taken_s"]:
            log = self._log.read_text(errors="replace")
            raise SystemExit(f"./mutants: {module.name}: the tests did not run:\n{log[-2000:]}")
        self.unfit = sorted(found["failed"])
        self.slow = sorted(
            name
            for name, taken_s in found["taken_s"].items()
            if taken_s > module.slowest_s and name not in found["failed"]
        )
        left_out = {*self.unfit, *self.slow, *found["skipped"]}
        self.taken_s = {n: s for n, s in found["taken_s"].items() if n not in left_out}
        self._reached = found["reached"]
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        sys.dont_write_bytecode = True
        for name in found["libraries"]:
            try:
                __import__(name)
            except Exception:  # an optional part of a library: the tests import it or not
                continue
        if self._run(sorted(self.taken_s, key=lambda n: self.taken_s[n])) != "survived":
            log = self._log.read_text(errors="replace")
            raise SystemExit(f"./mutants: {module.name}: fails without a mutant:\n{log[-2000:]}")

    def tests_of(self, mutant: Mutant) -> list[str] | None:
        """Tests that reach the line, the quickest first; None if nothing does."""
        if self._module.build:
            return sorted(self.taken_s, key=lambda n: self.taken_s[n])
        lines = _statement(ROOT / mutant.file, mutant.line)
        reached = {name for n in lines for name in self._reached[mutant.file].get(n, ())}
        if not reached:
            return None
        wanted = {*self.taken_s} if "" in reached else reached & {*self.taken_s}
        return sorted(wanted, key=lambda n: self.taken_s[n])

    def outcome(self, mutant: Mutant) -> str:
        """`killed`, `timeout`, `crashed`, `survived`, `unreached`, or `refused` by the compiler."""
        chosen = self.tests_of(mutant)
        if chosen is None and not self._module.build:
            return "unreached"
        path = self._where / mutant.file
        whole = path.read_bytes()
        path.write_text(mutant.text, encoding="utf-8")
        shutil.rmtree(path.parent / "__pycache__", ignore_errors=True)
        try:
            if self._module.build:
                built = subprocess.run(self._module.build, capture_output=True, check=False)
                if built.returncode != 0:
                    return "refused"
            rest = [name for name in self.taken_s if name not in {*(chosen or [])}]
            for tests in (chosen or [], rest):
                if tests and (found := self._run(tests)) != "survived":
                    return found
            return "survived"
        finally:
            path.write_bytes(whole)

    def _run(self, tests: list[str]) -> str:
        files = list(dict.fromkeys(name.split("::")[0] for name in tests))
        cpu_s = sum(self.taken_s[name] for name in tests)

        def run() -> int:
            return run_pytest(["-x", *files], Chosen(tests))

        outcome, code = in_fork(
            run, CPU_SHARE_MAX * cpu_s + CPU_SPARE_S, WALL_SHARE_MAX * cpu_s + WALL_SPARE_S,
            self._log,
        )  # fmt: skip
        if outcome != "ended":
            return outcome
        return "survived" if code == 0 else "killed"


def _statement(path: Path, line: int) -> range:
    """Lines of the statement at a line: of a block, its head."""
    best = range(line, line + 1)
    size = None
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or node.lineno):
            body = getattr(node, "body", None)
            end = body[0].lineno - 1 if body else node.end_lineno or node.lineno
            found = range(node.lineno, max(end, node.lineno) + 1)
            if line in found and (size is None or len(found) < size):
                best, size = found, len(found)
    return best


def chosen_mutants(module: Module, operators: list[str], seed: int) -> tuple[list[Mutant], int]:
    """The mutants to test, in the order of the lines, and how many there are."""
    found = []
    for file, old, new in module.changes:
        source = (ROOT / file).read_text(encoding="utf-8")
        if source.count(old) != 1:
            raise SystemExit(f"./mutants: {module.name}: {file} has not one place with: {old}")
        text = source.replace(old, new)
        pairs = zip(source.splitlines(), text.splitlines(), strict=False)
        line = next(n for n, (before, after) in enumerate(pairs, start=1) if before != after)
        found.append(Mutant(file, "by hand", line, text, _diff(source, text)))
    for file in [] if module.changes else module.files:
        of_c = file.endswith(".c")
        found += list(mutants_of_c(file) if of_c else mutants_of_python(file, operators))
    sample = found
    if len(found) > module.sample:
        sample = random.Random(f"{seed} {module.name}").sample(found, module.sample)
    return sorted(sample, key=lambda m: (m.file, m.line, m.operator)), len(found)


def reasons() -> dict[tuple[str, str, str], str]:
    """Why a mutant changes nothing that matters, by file and changed lines; '' is any change."""
    entries = tomllib.loads(EQUIVALENT.read_text(encoding="utf-8"))["equivalent"]
    return {(e["file"], e["line"], e.get("mutant", "")): e["reason"] for e in entries}


def _reason(known: dict[tuple[str, str, str], str], mutant: Mutant) -> str | None:
    before, after = mutant.diff
    return known.get((mutant.file, before, after)) or known.get((mutant.file, before, ""))


def test_module(module: Module, operators: list[str], seed: int) -> None:
    """Test the mutants of one module and write its result."""
    mutants, n_all = chosen_mutants(module, operators, seed)
    with tempfile.TemporaryDirectory(prefix="hil-mutants-", dir="/var/tmp") as folder:
        bed = Bed(module, Path(folder))
        print(f"{module.name}: {len(mutants)} of {n_all} mutants, {len(bed.taken_s)} tests of "
              f"{sum(bed.taken_s.values()):.1f} s", flush=True)  # fmt: skip
        outcomes = []
        for mutant in mutants:
            outcomes.append(bed.outcome(mutant))
            if outcomes[-1] != "killed":
                print(f"  {outcomes[-1]} {mutant.file}:{mutant.line} {mutant.operator}\n"
                      f"    - {mutant.diff[0]}\n    + {mutant.diff[1]}", flush=True)  # fmt: skip
        write_result(module, bed, list(zip(mutants, outcomes, strict=True)), n_all, seed)
        os.chdir(ROOT)


def write_result(
    module: Module, bed: Bed, tested: list[tuple[Mutant, str]], n_all: int, seed: int
) -> None:
    known = reasons()
    tested = [(mutant, outcome) for mutant, outcome in tested if outcome != "refused"]
    count = Counter(outcome for _, outcome in tested)
    alive = [(m, o) for m, o in tested if o in ("survived", "unreached")]
    equivalent = [m for m, _ in alive if _reason(known, m)]
    killed = count["killed"] + count["timeout"] + count["crashed"]
    git = ["git", "-C", str(ROOT)]
    commit = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True).stdout
    changed = subprocess.run([*git, "diff", "--quiet", "HEAD", "--", "hil", "firmware", "tests"])
    head = {
        "commit": commit.strip() + (", tree changed" if changed.returncode else ""),
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "files": " ".join(module.files),
        "mutants": f"{len(tested)} of {n_all}"
        + (f", drawn with seed {seed}" if len(tested) < n_all else ""),
        "killed": f"{killed}"
        + "".join(f", {count[how]} {text}" for how, text in WAYS if count[how]),
        "survived": f"{len(alive)}, {len(equivalent)} of them equivalent",
        "score": f"{100 * killed / max(1, len(tested) - len(equivalent)):.1f} %",
        "tests": f"{len(bed.taken_s)}, {sum(bed.taken_s.values()):.1f} s in all",
    }
    lines = [f"{key:9}{value}" for key, value in head.items()]
    for text, names in (
        (f"left out, slower than {module.slowest_s:g} s here", bed.slow),
        ("left out, fail here" + ("" if module.compiled else ", without compilation"), bed.unfit),
    ):
        lines += ["", f"{text}:", *(f"  {name}" for name in names)] if names else []
    for mutant, outcome in alive:
        why = _reason(known, mutant)
        told = f"equivalent: {why}" if why else outcome
        lines += ["", f"{mutant.file}:{mutant.line} {mutant.operator}: {told}",
                  f"  - {mutant.diff[0]}", f"  + {mutant.diff[1]}"]  # fmt: skip
    RESULTS.mkdir(parents=True, exist_ok=True)
    text = "\n".join(lines) + "\n"
    (RESULTS / f"{module.name}.txt").write_text(text, encoding="utf-8")
    print("\n".join(lines[: len(head)]), flush=True)


# ---- the command


def table() -> str:
    """One line a module, from the results that are there."""
    rows = ["module        mutants  killed  survived  equivalent  score   date"]
    for path in sorted(RESULTS.glob("*.txt")):
        if path.name == "table.txt":
            continue
        pairs = (line.split(None, 1) for line in path.read_text().splitlines()[:8])
        head = dict(pairs)
        mutants, killed = head["mutants"].split()[0], head["killed"].split()[0].strip(",")
        survived, equivalent = (head["survived"].split()[i].strip(",") for i in (0, 1))
        rows.append(f"{path.stem:14}{mutants:>7}{killed:>8}{survived:>10}{equivalent:>12}"
                    f"{head['score']:>8}  {head['date'][:10]}")  # fmt: skip
    return "\n".join(rows) + "\n"


def modules() -> tuple[dict[str, Module], list[str]]:
    settings = tomllib.loads(CONFIG.read_text(encoding="utf-8"))
    of = {name: Module(name=name, **table) for name, table in settings["modules"].items()}
    return of, settings["operators"]


def main() -> int:
    known, operators = modules()
    parser = argparse.ArgumentParser(prog="./mutants", description="Test the tests by mutation.")
    parser.add_argument("modules", nargs="*", metavar="MODULE", help=", ".join(known))
    parser.add_argument("--sample", type=int, metavar="N", help="at most N mutants of a module")
    parser.add_argument("--seed", type=int, default=29, help="of the sample; 29")
    asked = parser.parse_args()
    for name in asked.modules:
        if name not in known:
            print(f"./mutants: no module '{name}': choose from {', '.join(known)}", file=sys.stderr)
            return 2
    for tool in ("cosmic_ray", "coverage"):
        if importlib.util.find_spec(tool) is None:
            print(f"./mutants: {tool} is not installed: run ./run-tests once, or use its .venv",
                  file=sys.stderr)  # fmt: skip
            return 2
    for name in asked.modules or known:
        module = known[name]
        if asked.sample:
            module = Module(**(vars(module) | {"sample": asked.sample}))
        child = os.fork()  # Numba is set up once a process
        if child == 0:
            try:
                test_module(module, operators, asked.seed)
            except SystemExit as why:
                print(why, file=sys.stderr)
                os._exit(1)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if status:
            return 1
    (RESULTS / "table.txt").write_text(table(), encoding="utf-8")
    print(table(), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
