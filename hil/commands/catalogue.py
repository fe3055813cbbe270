"""Find: runs of a folder by what they are, and why two differ."""

from __future__ import annotations

import sys

from hil.commands.parser import DONE, Group, count_of, path_of, print_json, show
from hil.errors import ConfigError
from hil.platform.terminal import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from hil.runs.catalogue.query import Answer, Catalogue, Filter

# As `hil.runs.catalogue.query.BY_NAME` and `hil.runs.catalogue.notes.ACTIONS` have them.
BY_NAME = ("rig", "experiment", "specimen", "operator", "outcome", "campaign")
ACTIONS = ("note", "star", "unstar", "tag", "untag")
SCREEN = 20
RED, YELLOW, BOLD, PLAIN = "\033[31m", "\033[33m", "\033[1m", "\033[0m"


def add_to(group: Group) -> None:
    """Add these commands."""
    c = group.add(
        runs,
        "find runs, newest first; add notes, stars and tags to them",
        "hil runs --rig miga6 --since 7d --where 'rms_N < 0.02 and controller_kind = \"pid\"'; "
        'hil runs note 3f2a91c0 "wire replaced"',
    )
    c.add_argument(
        "words",
        nargs="*",
        metavar="RUN",
        help=f"{', '.join(ACTIONS)}, then RUN and a text; RUN is a path, or the column 'run'",
    )
    c.path("--folder", "DIR", "all recordings below it (default: runs)", default=path_of("runs"))
    for name in BY_NAME:
        c.value(f"--{name}", name.upper(), "pattern: * and ? stand for any letters")
    c.value("--since", "TIME", "a date or time in UTC, or an age: 12h, 7d, 2w", default="")
    c.value("--until", "TIME", "the same; a date includes its day", default="")
    c.value("--tag", "TAG", "only runs with this tag", default="")
    c.flag("--starred", "only runs with a star")
    c.value("--where", "EXPRESSION", "of columns, in SQL", default="")
    c.value("--sql", "SELECT", "any question to the table 'runs'")
    c.value("--columns", "A,B", "these columns; * for all, ? lists them")
    c.value("--limit", "N", "the newest N, 0 for all (default: a screen)", type=count_of)
    c.add_argument("--csv", metavar="FILE", nargs="?", const="", help="as CSV, or to this file")
    c.path("--parquet", "FILE", "write them as Parquet")
    c.value(
        "--trend", "FIGURE", "a figure over time, with control limits, and who broke them first"
    )
    c.value("--by", "COLUMN", "with --trend: one trend for each of its values", default="")
    c.path("--out", "FILE.png", "with --trend: also draw it (.png, .svg, .pdf)")
    c.path("--page", "FILE.html", "write one page with search, sorting and thumbnails")
    c.flag("--open", "show the first of them in the window")
    c.flag("--report", "write figure and page of each, as hil report does")
    c.flag("--rebuild", "make the index again from the recordings")

    c = group.add(
        diff,
        "say how two runs differ, and which cause changes a figure",
        "hil diff runs/monday.h5 runs/today.h5 --page why.html",
    )
    c.value("runs", "RUN.h5|RUN", "two recordings: paths, or names as hil runs has them", nargs=2)
    c.path("--folder", "DIR", "where names are looked up (default: runs)", default=path_of("runs"))
    c.value("--figure", "NAME", "explain this one (default: that which differs most)", default="")
    c.path("--page", "FILE.html", "also write a page")


def diff(args: argparse.Namespace) -> int:
    from hil.reports import diff_page

    a, b = (_path(name, args.folder) for name in args.runs)
    comparison = diff_page.difference(a, b, args.figure, progress=not args.json)
    if args.page is not None:
        diff_page.write_page(comparison, _page(args.page))
    text = "\n".join([*diff_page.lines(comparison), *([f"page: {args.page}"] if args.page else [])])
    show(args, diff_page.as_dict(comparison), text)
    return DONE


def _path(name: str, folder: Path) -> Path:
    """The recording of a path, or of a name in the index."""
    path = path_of(name)
    if path.exists() or path.suffix == ".h5" or not folder.is_dir():
        return path
    from hil.runs.catalogue.query import Catalogue

    return folder / str(Catalogue(folder).one(name)["path"])


def runs(args: argparse.Namespace) -> int:
    from hil.runs.catalogue.query import Catalogue

    if args.words and args.words[0] not in ACTIONS:
        from hil.errors import remedy

        raise ConfigError(
            f"hil runs: '{args.words[0]}' is no action{remedy(args.words[0], ACTIONS)}"
        )
    _refuse_unused(args)
    catalogue = Catalogue(args.folder, rebuild=args.rebuild)
    for line in catalogue.noticed.lines():
        say(f"{args.folder}: {line}", file=sys.stderr)
    if args.words:
        return _remark(args, catalogue)
    if args.columns == "?":
        show(args, {"columns": catalogue.columns}, "\n".join(catalogue.columns))
        return DONE
    wanted = _filter(args, catalogue)
    if args.trend is not None:
        return _trend(args, catalogue, wanted)
    answer = catalogue.find(wanted) if args.sql is None else catalogue.sql(args.sql)
    if args.open or args.report or args.page is not None:
        return _look(args, answer)
    _print(args, answer)
    return DONE


def _refuse_unused(args: argparse.Namespace) -> None:
    """ConfigError for an option that would change nothing."""
    filters = (*BY_NAME, "since", "until", "tag", "starred", "where", "columns", "limit")
    for option, without in (
        ("sql", (*filters, "trend")),
        ("trend", ("columns", "limit", "csv", "parquet", "page", "open", "report")),
    ):
        used = [name for name in without if getattr(args, name) not in (None, "", False)]
        if getattr(args, option) is not None and used:
            raise ConfigError(f"--{option}: takes no --{used[0]}: leave one out")
    for name in ("by", "out"):
        if getattr(args, name) and args.trend is None:
            raise ConfigError(f"--{name}: belongs to --trend: give --trend FIGURE")


def _trend(args: argparse.Namespace, catalogue: Catalogue, wanted: Filter) -> int:
    """Print a trend, and draw it."""
    from hil.reports import trend

    trends = trend.trends(catalogue, wanted, args.trend, args.by)
    lines = [line for one in trends for line in one.lines()]
    if args.out is not None:
        trend.save(trends, args.trend, args.out)
        lines.append(f"figure: {args.out}")
    show(args, trend.as_dict(trends, args.trend), "\n".join(lines))
    return DONE


def _remark(args: argparse.Namespace, catalogue: Catalogue) -> int:
    from hil.runs.catalogue.notes import remark
    from hil.runs.catalogue.row import UNREADABLE

    action, *rest = args.words
    if not rest:
        raise ConfigError(
            f"hil runs {action}: name a run: its path, or the column 'run' of hil runs"
        )
    run = catalogue.one(rest[0])
    path = run["path"] if run.pop("outcome") == UNREADABLE else ""
    remark(args.folder, run["identity"], action, rest[1:], path)
    show(args, {"action": action, **run, "texts": rest[1:]}, f"{run['path']}: {action}")
    return DONE


def _filter(args: argparse.Namespace, catalogue: Catalogue) -> Filter:
    from hil.runs.catalogue.query import SHOWN, Filter

    data = args.json or args.csv is not None or args.parquet is not None
    columns = () if args.columns == "*" or (data and args.columns is None) else SHOWN
    if args.columns not in (None, "*"):
        columns = tuple(name.strip() for name in args.columns.split(",") if name.strip())
        if not columns:
            raise ConfigError("--columns: names none: give A,B, or * for all, ? for a list")
    screen = 0 if data or args.report or args.page or not sys.stdout.isatty() else _screen()[1] - 4
    return Filter(
        names={name: text for name in BY_NAME if (text := getattr(args, name)) is not None},
        since=args.since, until=args.until, where=args.where, tag=args.tag, starred=args.starred,
        columns=("path",) if args.open or args.report else columns,
        limit=screen if args.limit is None else args.limit,
    )  # fmt: skip


def _page(path: Path) -> Path:
    """The name of a page, which is no experiment's by a slip."""
    if path.suffix.lower() not in (".html", ".htm"):
        raise ConfigError(f"--page {path}: a page: give a name that ends in .html")
    return path


def _look(args: argparse.Namespace, answer: Answer) -> int:
    """Open the first run in the window, or write the reports or the page of all."""
    if "path" not in answer.columns:
        raise ConfigError("--open, --report, --page: give them the column 'path'")
    at = answer.columns.index("path")
    paths = [args.folder / str(row[at]) for row in answer.rows]
    if not paths:
        raise ConfigError("--open, --report, --page: no such run")
    if args.page is not None:
        from hil.reports.runs_page import write_page

        write_page(args.folder, answer, _page(args.page))
        show(args, {"page": str(args.page), "count": len(paths)}, f"page: {args.page}")
        return DONE
    if args.open:
        from hil.platform.window import open_window, require_window

        require_window()
        return open_window(paths[0])
    from hil.reports.run_report import write_report

    written = [write_report(path) for path in paths]
    facts = {"reports": [{"figure": str(f), "page": str(p)} for f, p in written]}
    show(args, facts, "\n".join(f"page: {page}" for _, page in written))
    return DONE


def _print(args: argparse.Namespace, answer: Answer) -> None:
    if args.parquet is not None:
        answer.write_parquet(args.parquet)
    if args.csv is not None:
        from hil.errors import writing
        from hil.platform.whole_files import write_whole

        text = answer.as_csv()
        if args.csv:
            with writing(args.csv):
                write_whole(path_of(args.csv), text)
        else:
            print(text, end="")
    if args.json:
        print_json({"folder": str(args.folder), "count": len(answer.rows), "runs": answer.dicts()})
    elif args.csv is None and args.parquet is None:
        _print_table(answer)


def _print_table(answer: Answer) -> None:
    from hil.runs.catalogue.query import as_lines

    if not answer.rows:
        say("no such run")
        return
    terminal = sys.stdout.isatty()
    at = answer.columns.index("outcome") if "outcome" in answer.columns else None
    lines = as_lines(answer, _screen()[0] if terminal else None)
    print(_coloured(next(lines), BOLD if terminal else ""))
    for line, row in zip(lines, answer.rows, strict=True):
        bad = at is not None and row[at] in ("tripped", "aborted", "unreadable")
        print(_coloured(line, RED if terminal and bad else ""))


def _coloured(line: str, colour: str) -> str:
    from hil.platform.terminal import shown

    return f"{colour}{shown(line)}{PLAIN}" if colour else shown(line)


def _screen() -> tuple[int, int]:
    """Columns and lines of the terminal."""
    import shutil

    size = shutil.get_terminal_size((100, SCREEN + 4))
    return size.columns, max(size.lines, 8)
