"""Rig: what is connected, and the driver board."""

from __future__ import annotations

import sys

from hil.commands.parser import ANSWER_NO, DONE, Group, need_serial, path_of, print_json, show
from hil.errors import ConfigError
from hil.platform.terminal import say
from hil.procedures.questions import QUESTIONS

BRING_UP = "bring-up"
NOT_OF_BRING_UP = ("from_rig", "image", "programmer", "boot_loader", "fuses", "yes", "modules")
OF_BRING_UP = ("by", "meter", "board", "load", "supply", "undo", "rehearse", "fault")

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse


def add_to(group: Group) -> None:
    """Add these commands."""
    c = group.add(
        new,
        "describe your own rig: written, checked, drawn, simulated",
        "hil new rig my_rig --wire flexinol_100_HT --cells 4 --against spring --switches arduino "
        "--measures labjack-T7 --cut labjack",
    )
    c.add_argument("what", choices=("rig",))
    c.path("folder", "DIR", "folder of the rig, such as configs/mine")
    c.path("--answers", "FILE.toml", "take the answers from this file; options replace them")
    for key, about in QUESTIONS.items():
        c.value(f"--{key.replace('_', '-')}", "VALUE", about)

    c = group.add(devices, "list boards, cards, supplies and instruments", "hil devices --identify")
    c.flag("--identify", "open every serial port and read its identity")

    c = group.add(
        board,
        "a driver board's limits, firmware, parts and first power-up",
        "hil board limits usb:HIL-0001 --set on_time_max_ms=20000; "
        "hil board bring-up configs/wires4/rig.toml --rehearse; "
        "hil board limits --from configs/wires4/rig.toml; "
        "hil board flash usb:HIL-0001; hil board bom configs/wires4/rig.toml",
    )
    c.add_argument("what", choices=("limits", "flash", "bom", BRING_UP))
    c.value(
        "port",
        "PORT",
        "usb:SERIAL_NUMBER or a device path; for bom the RIG.toml, for bring-up the RIG.toml that "
        "names it",
        nargs="?",
    )
    c.flag("--modules", "bom: bought modules for six cells in place of the board for twelve")
    c.path(
        "--from",
        "RIG.toml",
        "limits: print the limits that protect the wires of this rig",
        dest="from_rig",
    )
    c.path(
        "--out",
        "FILE.toml",
        "with --from: write the limits to a file; bring-up: the record (default: "
        "calibration/bring_up-SERIAL-DATE.toml)",
    )
    c.several("--set", "LIMIT=VALUE", "change a limit in the board's memory (repeatable)")
    c.value("--port", "PORT", "the same as PORT", dest="port_option")
    c.value(
        "--build",
        "BUILD",
        "board: the driver board, or a Nano with its multiplexers (the default); arduino: an Uno "
        "or Nano as it is sold, which measures nothing",
        default="board",
        choices=("board", "arduino"),
    )
    c.value(
        "--baud",
        "BAUD",
        "of the boot loader (default: %(default)s; Nanos sold before 2018: 57600)",
        type=int,
        default=115_200,
    )
    c.path("--image", "FILE.hex", "flash this image in place of the bundled firmware")
    c.value(
        "--programmer",
        "NAME",
        "an avrdude programmer on the board's six pins; also writes the fuses and removes "
        "the boot loader (default: the boot loader, through PORT)",
    )
    c.value(
        "--programmer-port", "PORT", "port of the programmer (default: %(default)s)", default="usb"
    )
    c.path("--boot-loader", "FILE.hex", "with --programmer: also write this into the boot section")
    c.flag("--fuses", "with --programmer: write the fuses and read them back, nothing else")
    c.flag("--yes", "do not ask for confirmation")
    c.value("--by", "NAME", "bring-up: who does it, and signs the record", default="")
    c.value("--meter", "TEXT", "bring-up: the meter, with its serial number", default="")
    c.value("--board", "NAME", "bring-up: the board of a rig with several")
    c.value("--load", "OHM", "bring-up: the dummy load (default: draws as much as a wire)",
            type=float)  # fmt: skip
    c.value("--supply", "V", "bring-up: the cells' supply (default: the rig's)", type=float)
    c.value("--undo", "N", "bring-up: first withdraw the last N steps", type=int, default=0)
    c.flag("--rehearse", "bring-up: on a simulated bench around the emulated chip")
    c.several("--fault", "NAME", "with --rehearse: put this fault in (repeatable)")
    c.value("--backend", "BACKEND", "of --rehearse: emulated (the default), or sim",
            default="emulated", choices=("emulated", "sim"))  # fmt: skip
    c.value("--seed", "N", "of --rehearse: which cell has the fault (default: 0)", type=int,
            default=0)  # fmt: skip


def new(args: argparse.Namespace) -> int:
    from hil.procedures.new_rig import answers_of, make, refuse_taken

    refuse_taken(args.folder)
    options = {key: text for key in QUESTIONS if (text := getattr(args, key)) is not None}
    if not options and args.answers is None:
        say(f"{args.folder}: what is on the bench? Enter takes the value in [ ].", file=sys.stderr)
    try:
        answers = answers_of(options, args.answers, input)
    except EOFError:
        raise ConfigError("hil new rig: an answer is missing: give options, or --answers") from None
    made = make(args.folder, answers)
    show(args, made.facts, made.as_text())
    return DONE


def devices(args: argparse.Namespace) -> int:
    from hil.devices import instrument_listing as makers
    from hil.devices.board.listing import identified, ports_as_text, serial_ports
    from hil.devices.nidaq.listing import cards, cards_as_text
    from hil.devices.supply.listing import resources_as_text, visa_resources

    need_serial()
    ports, (rows, why_none) = serial_ports(), cards()
    visa, why_no_visa = visa_resources()
    instruments = [*makers.labjacks(), *makers.phidgets()]
    if args.identify:
        ports = identified(ports)
        free = [p["port"] for p in ports if not p["board"].startswith(("driver board", "held by"))]
        futeks = makers.futeks(free)
        taken = {port for port in free for one in futeks if one.what.endswith(f" at {port}")}
        instruments += [*futeks, *makers.indicators(port for port in free if port not in taken)]
    facts = {"serial_ports": ports, "cards": rows, "no_cards": why_none,
             "visa": visa, "no_visa": why_no_visa,
             "instruments": [one._asdict() for one in instruments]}  # fmt: skip
    texts = (
        ports_as_text(ports), cards_as_text(rows, why_none), resources_as_text(visa, why_no_visa),
        makers.instruments_as_text(instruments, makers.why_none(), identify=args.identify),
    )  # fmt: skip
    show(args, facts, "\n".join(texts))
    return DONE


def board(args: argparse.Namespace) -> int:
    from hil.devices.board import listing as boards

    if args.what == BRING_UP:
        _refuse_others(args, NOT_OF_BRING_UP)
        return _bring_up(args)
    _refuse_others(args, OF_BRING_UP)
    if args.what == "bom":
        return _parts(args)
    if args.modules:
        raise ConfigError("--modules belongs to hil board bom")
    if args.from_rig is not None:
        return _protecting_limits(args)
    if args.port is not None and args.port_option is not None:
        raise ConfigError("hil board: give one PORT, with or without --port")
    args.port = args.port or args.port_option
    if args.port is None:
        raise ConfigError(f"hil board {args.what}: give a PORT, such as usb:HIL-0001")
    need_serial()
    if args.what == "flash":
        from hil.devices.board import flash

        if args.set:
            raise ConfigError("--set belongs to hil board limits")
        writing = flash.Writing(
            image=args.image, build=args.build, programmer=args.programmer,
            programmer_port=args.programmer_port, boot_loader=args.boot_loader,
            fuses_alone=args.fuses, baud=args.baud,
        )  # fmt: skip
        identity = flash.flashed(args.port, writing)
    else:
        identity = boards.identity(args.port)
    if args.set:
        table = boards.changed_limits(identity, args.set)
        changes = [f"{k}: {identity['limits'][k]} -> {v}" for k, v in table.items()
                   if identity["limits"][k] != v]  # fmt: skip
        if not args.yes:
            say("\n".join(["these limits of the board would change:", *changes]))
            if input("store them? type yes: ").strip() != "yes":
                say("nothing was changed")
                return ANSWER_NO
        boards.store_limits(args.port, table)
        identity = boards.identity(args.port)
    show(args, identity, boards.identity_as_text(args.port, identity))
    return DONE


def _refuse_others(args: argparse.Namespace, names: tuple[str, ...]) -> None:
    """Options of another of the things that `hil board` does would be without effect."""
    for name in names:
        if getattr(args, name):
            option = "--from" if name == "from_rig" else f"--{name.replace('_', '-')}"
            raise ConfigError(f"{option}: has no effect on hil board {args.what}: leave it out")


def _bring_up(args: argparse.Namespace) -> int:
    from hil.procedures.bring_up.run import BringUpRequest, Failed, bring_up
    from hil.procedures.text import as_text

    need_serial()
    done = bring_up(
        BringUpRequest(
            rig=None if args.port is None else path_of(args.port), port=args.port_option,
            board=args.board, by=args.by, meter=args.meter, load_Ohm=args.load,
            supply_V=args.supply, sets=tuple(args.set), out=args.out, undo=args.undo,
            rehearse=args.rehearse, faults=tuple(args.fault), backend=args.backend, seed=args.seed,
        )
    )  # fmt: skip
    if isinstance(done, Failed):
        facts = {"failed": done.key, "what": done.failure.what, "check": done.failure.check}
        show(args, facts, done.as_text())
        return ANSWER_NO
    show(
        args,
        {"file": str(done.path), "id": done.record.id, "status": done.record.record.status,
         "values": dict(zip(done.record.names, done.record.values, strict=True)),
         "truth": done.truth, "said": done.messages},
        as_text(done),
    )  # fmt: skip
    return DONE


def _protecting_limits(args: argparse.Namespace) -> int:
    from hil.experiment.board_limits import limits_as_toml
    from hil.experiment.load import load_rig
    from hil.mechanics.sma.limits import NoTableError

    if args.what != "limits" or args.port or args.port_option or args.set:
        raise ConfigError("hil board: --from RIG works only with limits, without PORT or --set")
    boards = load_rig(args.from_rig, complete=True).protections
    described = [board for board in boards if board.cells]
    if not described:
        raise ConfigError(
            f"{args.from_rig}: no wire is described: add [devices.BOARD.wire], or thermal cells"
        )
    try:
        text = "\n\n".join(limits_as_toml(board) for board in described)
    except NoTableError as error:
        raise ConfigError(f"{args.from_rig}: {error}") from None
    if args.json:
        print_json({board.name: board.wanted() for board in described})
    elif args.out is None:
        say(text)
    if args.out is not None:
        if args.out.exists():
            raise ConfigError(f"{args.out}: exists: choose another --out")
        from hil.errors import writing
        from hil.platform.whole_files import write_whole

        with writing(args.out):
            write_whole(args.out, f"{text}\n")
    return DONE


def _parts(args: argparse.Namespace) -> int:
    from hil.experiment import board_parts
    from hil.experiment.load import load_rig

    rig = args.port or args.from_rig
    if rig is None or args.port_option or args.set:
        raise ConfigError("hil board bom: give a RIG.toml, without PORT or --set")
    kind: board_parts.Kind = "modules" if args.modules else "board"
    boards = load_rig(rig, complete=True).protections
    if not boards:
        raise ConfigError(
            f'{rig}: has no driver board: add [devices.NAME] with kind = "cell_board"'
        )
    bills = [board_parts.bill(path_of(rig), board, kind) for board in boards]
    facts = {"build": kind, "boards": [board_parts.as_data(bill) for bill in bills]}
    show(args, facts, "\n\n".join(board_parts.as_text(bill, kind) for bill in bills))
    return DONE
