"""Proves the firmware's core: one table of properties, methods, bounds and verdicts.

Usage: prove.py FOLDER [CELLS ...]. FOLDER holds `explore` and `heat_steps`; Frama-C (Debian:
frama-c-base) analyses boards of each of these numbers of CELLS, 12 by default. Exit code 1:
something is not proven.
"""

import csv
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

CORE = sorted(Path("core").glob("*.c"))
INTS = {"x86_64": "32-bit int", "x86_16": "16-bit int, as on the ATmega"}

# Where cases are kept apart, and where joining them loses nothing.
SLEVELS = (
    "guard_sample:0,check_reading:0,take_reading:0,board_faults_of:4,cell_sample:0,guard_probe:0,check_temperature:0,check_current_high:0,check_current_low:0,"
    "check_current_off:0,guard_condition:0,heat_add:0,heat_cool:0,heat_count:0,cell_command:0,"
    "limits_crc_entry:30,limits_crc:0,board_is_cool:0,switch_cells:0,port_gates_set:2,board_all_off:0,"
    "limits_sane:30,draw_cells:0,answer_send:0,serve_broadcast:100,answer_probe:0,turn:100000,"
    "check_board:100000,board_poll:100000,main:0,board_conditions:2000,reading_conditions:0,take_sample:3000,count_reading:0,"
    "watch_host:1000,check_cell:3000,check_reference:0,guard_reference:0,check_gate:0,"
    "board_probe:1000,serve_arm:5000,board_estop_open:1000,any_board:0,vary:0,check_state:100000,listen:100000,"
    "command_serve:5000,frame_open:5000,are_readable:0,"
    "serve:5000,send:5000,serve_clear_faults:3000,serve_set_limits:1000,board_boot:1000,"
    "new_arming:0,first_arming:0,board_resume:0,sense_poll:1000,sense_take:3000,guard_sensed:0,cell_sensed:0,sense_restrict:0"
)
MERGED = (
    "board_set,port_gates_set,board_all_off,draw_cells,answer_send,serve_set_mask,isolate,"
    "switch_cells,board_is_cool"
)
OPTIONS = [
    *("-eva-precision", "0", "-eva-plevel", "2000", "-eva-ilevel", "32", "-eva-slevel", "100"),
    *("-eva-split-return", "full", "-eva-interprocedural-splits", "-eva-min-loop-unroll", "17"),
    *("-eva-slevel-function", SLEVELS, "-eva-slevel-merge-after-loop", MERGED),
]
ENCODER_OPTIONS = [
    *("-eva-precision", "0", "-eva-slevel", "400", "-eva-min-loop-unroll", "140"),
    *("-eva-split-return", "full", "-eva-slevel-function", "frame_crc:0,main:0,answer:0"),
]


class Row(NamedTuple):
    name: str
    method: str
    bound: str
    proven: bool


def explored(folder: Path) -> list[Row]:
    """Every exploration; a property is proven if it holds in each, and each came to its end."""
    listed = subprocess.run([folder / "explore"], capture_output=True, text=True, check=True)
    holds: dict[str, bool] = {}
    n_states = 0
    for name, varies in (line.split(maxsplit=1) for line in listed.stdout.splitlines()):
        done = subprocess.run([folder / "explore", name], capture_output=True, text=True)
        *rows, summary = done.stdout.splitlines()
        print(done.stderr if done.returncode else "", end="", file=sys.stderr)
        print(f"{summary}: {varies}", flush=True)
        n_states += int(re.search(r"(\d+) states", summary)[1])
        for row in rows:
            of, verdict, _ = row.split(maxsplit=2)
            whole = verdict == "holds" and "no further state" in summary
            holds[of] = holds.get(of, True) and whole
    bound = f"2 cells, explorations.c, {n_states} states"
    return [Row(of, "every reachable state", bound, verdict) for of, verdict in holds.items()]


def heat(folder: Path) -> Row:
    """The steps of the heat budget's proof."""
    done = subprocess.run([folder / "heat_steps"], capture_output=True, text=True)
    print(done.stderr, end="", file=sys.stderr)
    print(done.stdout, end="", flush=True)
    bound = "any currents, duties and times between readings below 262 ms, any limits"
    proven = done.returncode == 0 and "holds" in done.stdout
    return Row("heat_budget", "by induction", bound, proven)


def named(statement: dict[str, str]) -> str:
    """The property that a line of the proof's own sources asks for; else a run-time error."""
    if statement["property kind"] == "precondition of invariant":
        return "inductive"
    if statement["property kind"] == "precondition of group_property":
        return "within_frame"
    if statement["property kind"] != "precondition of property":
        return "no_run_time_error"
    source = Path(statement["directory"]) / statement["file"]
    line = source.read_text().splitlines()[int(statement["line"]) - 1]
    found = re.search(r"PROPERTY_(\w+)", line)
    assert found, line
    return found[1]


def run_eva(
    table: Path, machine: str, define: str, sources: list[Path], options: list[str]
) -> None:
    table.unlink(missing_ok=True)
    define = f"-cpp-extra-args=-DWIRE_HASH=1u -DFIRMWARE_HASH=2u {define} -Icore -Iport -Iproof"
    command = ["frama-c", "-machdep", machine, define, *sources, "-eva", *options]
    command += ["-then", "-report-csv", table]
    try:
        here = os.environ | {"PWD": str(Path.cwd())}  # frama-c goes by it
        done = subprocess.run(command, capture_output=True, text=True, env=here)
    except FileNotFoundError:
        sys.exit("frama-c is missing: apt-get install -y frama-c-base")
    if done.returncode != 0 or not table.exists():
        sys.exit(f"frama-c failed:\n{done.stdout[-2000:]}{done.stderr}")


def verdicts(table: Path) -> dict[str, bool]:
    proven: dict[str, bool] = {"no_run_time_error": True}
    with table.open() as file:
        for statement in csv.DictReader(file, delimiter="\t"):
            if statement["directory"].startswith("FRAMAC"):
                continue
            if statement["property kind"] == "precondition":
                continue  # of the function: its calls are listed each
            ours = statement["directory"] == "proof"  # all of which has to be reached
            valid = ("Valid",) if ours else ("Valid", "Unreachable")
            name, holds = named(statement), statement["status"] in valid
            if not holds:
                print("not proven:", *statement.values(), file=sys.stderr)
            proven[name] = proven.get(name, True) and holds
    return proven


def analysed(folder: Path, cells: int, machine: str) -> list[Row]:
    """What Eva says of the core, but for frame.c's encoder, which any_frame.c stands for."""
    reader = folder / "frame_reader.c"
    renamed = re.sub(r"\bframe_(open|group)\(", r"unused_\1(", Path("core/frame.c").read_text())
    reader.write_text(renamed)
    sources = [Path("proof") / f"{name}.c" for name in ("any_answer", "any_frame", "watched")]
    sources += [path for path in CORE if path.name != "frame.c"] + [reader]
    table = folder / f"eva_{cells}_{machine}.csv"
    run_eva(table, machine, f"-DCELLS={cells}", sources, OPTIONS)
    bound = f"{cells} cells, {INTS[machine]}, any limits and answers"
    return [Row(name, "Eva, by induction", bound, holds) for name, holds in verdicts(table).items()]


def encoder(folder: Path, machine: str) -> list[Row]:
    table = folder / f"eva_encoder_{machine}.csv"
    run_eva(table, machine, "", [Path("proof/any_group.c"), Path("core/frame.c")], ENCODER_OPTIONS)
    bound = f"answers of every length the board sends, any bytes, {INTS[machine]}"
    return [
        Row(f"encoder: {name}", "Eva, by induction", bound, v)
        for name, v in verdicts(table).items()
    ]


def main() -> int:
    folder = Path(sys.argv[1])
    rows = [*explored(folder), heat(folder)]
    for cells in map(int, sys.argv[2:] or ["12"]):
        for machine in INTS:
            rows += analysed(folder, cells, machine)
    rows += encoder(folder, "x86_16")
    for row in rows:
        verdict = "proven" if row.proven else "NOT PROVEN"
        print(f"{row.name:<28} {row.method:<22} {verdict:<11} {row.bound}")
    return 0 if all(row.proven for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
