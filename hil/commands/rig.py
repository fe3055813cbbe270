"""Rig: what is connected, and the driver board."""

from __future__ import annotations

from hil.commands.parser import ANSWER_NO, DONE, Group, need_serial, print_json, show
from hil.errors import ConfigError
from hil.platform.terminal import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse


def add_to(group: Group) -> None:
    """Add these commands."""
    c = group.add(devices, "list boards, cards and supplies", "hil devices --identify")
    c.flag("--identify", "open every serial port and read its identity")

    c = group.add(
        board,
        "read or change a driver board's limits, flash its firmware",
        "hil board limits usb:HIL-0001 --set on_time_max_ms=20000; "
        "hil board limits --from configs/wires4/rig.toml; "
        "hil board flash usb:HIL-0001",
    )
    c.add_argument("what", choices=("limits", "flash"))
    c.value("port", "PORT", "usb:SERIAL_NUMBER or a device path", nargs="?")
    c.path(
        "--from",
        "RIG.toml",
        "limits: print the limits that protect the wires of this rig",
        dest="from_rig",
    )
    c.path("--out", "FILE.toml", "with --from: write the limits to a file")
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


def devices(args: argparse.Namespace) -> int:
    from hil.devices.board.listing import identified, ports_as_text, serial_ports
    from hil.devices.nidaq.listing import cards, cards_as_text
    from hil.devices.supply.listing import resources_as_text, visa_resources

    need_serial()
    ports, (found, why_none) = serial_ports(), cards()
    visa, why_no_visa = visa_resources()
    if args.identify:
        ports = identified(ports)
    facts = {"serial_ports": ports, "cards": found, "no_cards": why_none,
             "visa": visa, "no_visa": why_no_visa}  # fmt: skip
    texts = (
        ports_as_text(ports), cards_as_text(found, why_none), resources_as_text(visa, why_no_visa)
    )  # fmt: skip
    show(args, facts, "\n".join(texts))
    return DONE


def board(args: argparse.Namespace) -> int:
    from hil.devices.board import listing as boards

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
        found = flash.flashed(
            args.port, args.image, args.programmer, args.programmer_port, args.boot_loader,
            fuses_alone=args.fuses, build=args.build, baud=args.baud,
        )  # fmt: skip
    else:
        found = boards.identity(args.port)
    if args.set:
        table = boards.changed_limits(found["limits"], args.set)
        changes = [f"{k}: {found['limits'][k]} -> {v}" for k, v in table.items()
                   if found["limits"][k] != v]  # fmt: skip
        if not args.yes:
            say("\n".join(["these limits of the board would change:", *changes]))
            if input("store them? type yes: ").strip() != "yes":
                say("nothing was changed")
                return ANSWER_NO
        boards.store_limits(args.port, table)
        found = boards.identity(args.port)
    show(args, found, boards.identity_as_text(args.port, found))
    return DONE


def _protecting_limits(args: argparse.Namespace) -> int:
    from hil.experiment.board_limits import limits_as_toml
    from hil.experiment.load import load_protections
    from hil.mechanics.sma.limits import NoTableError

    if args.what != "limits" or args.port or args.port_option or args.set:
        raise ConfigError("hil board: --from RIG works only with limits, without PORT or --set")
    boards = load_protections(args.from_rig, complete=True)
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
        args.out.write_text(f"{text}\n", encoding="utf-8")
    return DONE
