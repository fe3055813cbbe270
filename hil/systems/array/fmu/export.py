"""Write an array as a functional mock-up unit (FMU), of FMI 3.0 or 2.0.

The unit is self-contained C (`c/`) with the array's numbers: its source and its binaries are in the
file. Co-simulation takes steps of `loop.period_s` with the arithmetic of
`hil.systems.array.model.system`; model exchange gives x' = A x + B F to the importer's solver. With
boards, the firmware (`firmware/core`) is in the unit, between the commands and the cells. Wires and
boards have co-simulation alone: hysteresis and firmware are no differential equations.

Source: Functional Mock-up Interface 3.0.2 and 2.0.4, Modelica Association; the header files come
from FMPy.
"""

import hashlib
import shutil
import subprocess
import tempfile
import uuid
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

import jinja2
import numpy as np
from numpy.typing import ArrayLike

from hil.errors import ConfigError, ModelError, missing_extra, one_line, writing
from hil.platform.whole_files import whole
from hil.systems.array.fmu import wires
from hil.systems.array.fmu.variables import (
    UNITS,
    Boards,
    Variables,
    nominals,
    outputs_of,
    variables_of,
)
from hil.systems.array.model.activation import SIGMOID, SMA, STEP, THERMAL, UNSCALED, CellActivation
from hil.systems.array.model.cell_array import EXACT_ORDER_MAX, CellArray

HERE = Path(__file__).parent
VERSIONS = (3, 2)
NO_BOARDS = Boards((), {}, {}, {}, {}, (), {})
IDENTIFIER = "array"
#: Compiler, folder of the binary in FMI 3 and 2, and its ending; the first one is this computer's.
TARGETS = (
    ("cc", "x86_64-linux", "linux64", ".so"),
    ("x86_64-w64-mingw32-gcc", "x86_64-windows", "win64", ".dll"),
)
FLAGS = ("-std=c11", "-O2", "-ffp-contract=off", "-fvisibility=hidden", "-shared", "-Wall")


@dataclass(frozen=True)
class _Content:
    """What differs between units: the numbers of `data.h`, and the files to compile."""

    variables: Variables
    arrays: Sequence[tuple[str, str, str, str]]
    places: Mapping[str, int]
    numbers: Mapping[str, float]
    firmware: Sequence[Path]
    defines: Mapping[str, str]

    def compiled(self, fmi: int) -> list[str]:
        """Names of the C files."""
        sources = ["unit.c", "wire.c", f"fmi{fmi}.c"]
        files = [path.name for path in self.firmware if path.suffix == ".c"]
        return [*sources, "host.c", *files] if files else sources


def export(
    model: CellArray,
    cells: Sequence[CellActivation],
    period_s: float,
    path: Path,
    fmi: int = 3,
    boards: Boards | None = None,
) -> list[str]:
    """Write the array as an FMU; returns the platforms that it has binaries for.

    Parameters
    ----------
    cells : activation of every cell
    period_s : step of co-simulation
    fmi : major version of FMI, 3 or 2
    boards : driver boards of the cells, whose firmware is in the unit; None: the cells are driven

    Raises
    ------
    ModelError
        The array has too many states.
    ConfigError
        FMPy or a C compiler is missing, or the file cannot be written.
    """
    if len(model.states) > EXACT_ORDER_MAX:
        raise ModelError(
            f"{len(model.states)} states: an FMU has at most {EXACT_ORDER_MAX}: reduce the array"
        )
    headers = _headers()
    content = _content(model, cells, period_s, boards)
    variables = content.variables
    exchange = boards is None and not any(cell.has_wire for cell in cells)
    names = boards.names if boards else ()
    used = {v.unit for v in variables.every}
    facts = {
        "name": path.stem,
        "identifier": IDENTIFIER,
        "token": _token(content),
        "description": f"array of {model.n_cells} cells" + (", driver boards" if boards else ""),
        "version": metadata.version("hil-arrays"),
        "date": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "period_s": repr(period_s),
        "units": {unit: base for unit, base in UNITS.items() if unit in used},
        "variables": variables.every,
        "outputs": variables.outputs,
        "derivatives": variables.derivatives,
        "unknowns": [
            *variables.outputs,
            *(variables.states if exchange else ()),
            *variables.derivatives,
        ],
        "arrays": content.arrays,
        "places": content.places,
        "numbers": content.numbers,
        "exchange": int(exchange),
        "has_boards": int(bool(boards)),
        "n_cells": model.n_cells,
        "n_external": len(model.inputs) - model.n_cells,
        "n_outputs": len(outputs_of(model)),
        "n_linear": len(model.states),
        "n_states": len(variables.states),
        "n_derivatives": len(variables.derivatives),
        "n_indicators": 3 * model.n_cells if exchange else 0,
        "n_wires": sum(cell.has_wire for cell in cells),
        "n_loaded": sum(cell.loaded is not None for cell in cells),
        "n_boards": len(names),
        "n_gates": sum(len(board.cells) for board in names),
        "n_plain": sum(len(board.plain) for board in names),
    }
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        sources = root / "sources"
        sources.mkdir()
        files = [HERE / "c" / name for name in ("unit.h", "shared.h", "room.h", "wire.h")]
        files += [HERE / "c" / "host.h"] if boards else []
        files += [
            HERE / "c" / name for name in content.compiled(fmi) if (HERE / "c" / name).exists()
        ]
        for file in (*files, *content.firmware, *headers.glob(f"fmi{fmi}*.h")):
            shutil.copy(file, sources)
        (sources / "data.h").write_text(_rendered("c/data.h.j2", facts))
        description = _rendered(f"description_fmi{fmi}.xml.j2", facts)
        (root / "modelDescription.xml").write_text(description, encoding="utf-8")
        (sources / "buildDescription.xml").write_text(_build_description(content, fmi))
        platforms = _compile(root, content, fmi)
        with (
            writing(path),
            whole(path) as part,
            zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as unit,
        ):
            for file in sorted(root.rglob("*")):
                if file.is_file():
                    unit.write(file, file.relative_to(root).as_posix())
    return platforms


def _content(
    model: CellArray, cells: Sequence[CellActivation], period_s: float, boards: Boards | None
) -> _Content:
    boards = boards or NO_BOARDS
    variables = variables_of(model, cells, boards.names)
    numbers, indices = wires.arrays(model, cells, period_s)
    arrays = [
        *_arrays(model, cells, variables),
        *(("double", name, *_in_c(rows)) for name, rows in (numbers | boards.numbers).items()),
        *(("int", name, *_in_c(rows)) for name, rows in (indices | boards.indices).items()),
    ]
    return _Content(
        variables,
        arrays,
        wires.PLACES | boards.places,
        wires.NUMBERS | boards.constants,
        boards.firmware,
        boards.defines,
    )


def _headers() -> Path:
    """Folder of the header files of FMI."""
    try:
        import fmpy
    except ImportError:
        raise missing_extra("an FMU", "fmu") from None
    return Path(fmpy.__file__).parent / "c-code"


def _arrays(
    model: CellArray, cells: Sequence[CellActivation], variables: Variables
) -> list[tuple[str, str, str, str]]:
    """Type, name, size and values of every array of `data.h`."""
    unit_N, shown = np.eye(model.n_cells), list(outputs_of(model))
    at_rest = [model.equilibrium(column) for column in unit_N]
    rows: dict[str, ArrayLike] = {
        "A": model.A,
        "B": model.B,
        "C": model.C[shown],
        "D": model.D[shown],
        "REST_PER_N": np.array(at_rest).T.reshape(len(model.states), model.n_cells),
        "FORCE_ON_N": [cell.force_on_N for cell in cells],
        "RATE_PER_S": np.array([cell.rates_per_s for cell in cells]).T,
        "STOP": np.array([cell.stops for cell in cells]).T,
        "NOMINAL": nominals(variables.states),
    }
    names = {STEP: "STEP", SIGMOID: "SIGMOID", UNSCALED: "UNSCALED", THERMAL: "THERMAL", SMA: "SMA"}
    kinds = [names[cell.code] for cell in cells]
    arrays = [("double", name, *_in_c(value)) for name, value in rows.items()]
    return [*arrays, ("enum kind", "KIND", f"[{len(kinds)}]", "{" + ", ".join(kinds) + "}")]


def _in_c(value: ArrayLike) -> tuple[str, str]:
    """Size and values of an array in C; no size is 0."""
    array = np.asarray(value)
    shape = tuple(max(1, n) for n in array.shape)
    filled = np.zeros(shape, dtype=array.dtype)
    filled[tuple(slice(n) for n in array.shape)] = array
    size = "".join(f"[{n}]" for n in shape)
    if array.ndim == 1:
        return size, "{" + ", ".join(map(repr, filled.tolist())) + "}"
    rows = ("{" + ", ".join(map(repr, row)) + "}" for row in filled.tolist())
    return size, "{\n    " + ",\n    ".join(rows) + "}"


def _token(content: _Content) -> str:
    """Token of the unit: a hash of numbers and firmware, so that equal units have equal tokens."""
    digest = hashlib.sha256(repr((content.arrays, content.defines)).encode()).digest()
    return f"{{{uuid.UUID(bytes=digest[:16])}}}"


def _rendered(name: str, facts: dict[str, object]) -> str:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE),
        autoescape=name.endswith(".xml.j2"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template(name).render(facts)


def _build_description(content: _Content, fmi: int) -> str:
    """The list of source files that FMI 3 asks for."""
    files = "".join(f'<SourceFile name="{name}"/>' for name in content.compiled(fmi))
    defines = "".join(
        f'<PreprocessorDefinition name="{name}" value="{value}"/>'
        for name, value in content.defines.items()
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<fmiBuildDescription fmiVersion="3.0">'
        f'<BuildConfiguration modelIdentifier="{IDENTIFIER}"><SourceFileSet language="C11">'
        f"{files}{defines}</SourceFileSet></BuildConfiguration></fmiBuildDescription>\n"
    )


def _compile(root: Path, content: _Content, fmi: int) -> list[str]:
    """Compile for every platform whose compiler is installed; returns their names."""
    platforms = []
    for compiler, folder_3, folder_2, ending in TARGETS:
        if shutil.which(compiler) is None:
            continue
        platform = folder_3 if fmi == 3 else folder_2
        target = root / "binaries" / platform / f"{IDENTIFIER}{ending}"
        target.parent.mkdir(parents=True)
        command = [compiler, *FLAGS, "-o", str(target)]
        command += ["-fPIC"] if ending == ".so" else ["-static-libgcc"]
        command += [f"-D{name}={value}" for name, value in content.defines.items()]
        command += [str(root / "sources" / name) for name in content.compiled(fmi)]
        built = subprocess.run([*command, "-lm"], capture_output=True, text=True)
        if built.returncode:
            raise ConfigError(f"{compiler}: cannot compile the unit: {one_line(built.stderr)}")
        platforms.append(platform)
    if not platforms:
        raise ConfigError("no C compiler: an FMU is compiled: apt-get install gcc")
    return platforms
