"""Where a server of hil listens, and who may connect to it.

A browser lets any web page connect to this computer, and says in `Origin` which page it was. A page
whose name was made to lead here (DNS rebinding) has that name in `Host`. Off loopback a reader
needs the token that the address has. See decision record 0018.
"""

import errno
import hmac
import ipaddress
import os
import re
import socket
import time
from asyncio import BaseTransport
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qs

if TYPE_CHECKING:
    from websockets.asyncio.server import ServerConnection

LOOPBACK = "127.0.0.1"
ANOTHER_PORT = "choose another port, or 0 for any that is free"
ANOTHER_HOST = "choose an address of this machine"
CONNECTIONS_MAX = 100  # at a time, with those that have asked for nothing yet
HANDSHAKES_MAX = 200
OPEN_S = 5.0  # in which a connection must say what it wants
HOST = re.compile(r"(\[(?P<v6>[0-9a-fA-F:.]+)\]|(?P<name>[\w.-]+))(:\d+)?", re.ASCII)


class Address(NamedTuple):
    """Where a server listens; port 0 is any free one."""

    host: str = LOOPBACK
    port: int = 0

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Whether only this computer reaches it."""
        return is_loopback(self.host)


def address_of(text: str) -> Address:
    """Parse `PORT` or `HOST:PORT`; ValueError if the port is not a number from 0 to 65535."""
    host, _, port = text.rpartition(":")
    if not (port.isascii() and port.isdecimal() and int(port) < 65536):
        raise ValueError(text)
    return Address(host.strip("[]") or LOOPBACK, int(port))


def reason_of(error: OSError) -> str:
    """Why an address cannot be used, and what to do, in one line."""
    if error.errno is None or isinstance(error, socket.gaierror):  # whose numbers are its own
        return f"{error.strerror or error}: {ANOTHER_HOST}"
    is_elsewhere = error.errno in (errno.EADDRNOTAVAIL, errno.EINVAL)
    return f"{os.strerror(error.errno)}: {ANOTHER_HOST if is_elsewhere else ANOTHER_PORT}"


def is_loopback(host: str | None) -> bool:
    """Whether a name or address of a host means this computer, whoever resolves it."""
    try:
        return host == "localhost" or ipaddress.ip_address(host or "").is_loopback
    except ValueError:
        return False


def refusal(
    address: Address,
    token: str,
    path: str,
    headers: Mapping[str, Sequence[str]],
    is_known: Callable[[str], bool],
) -> str:
    """Why a reader may not connect; empty if it may.

    Parameters
    ----------
    token : that a reader needs off loopback
    path : that it asks for, with its query
    headers : `Host` and `Origin` as it sends them, each any number of times
    is_known : whether pages of this origin may connect
    """
    origins, hosts = headers["Origin"], headers["Host"]
    if not all(map(is_known, origins)):
        return "pages of this origin may not watch"
    if address.is_loopback:
        if len(hosts) != 1 or not is_loopback(_host_of(hosts[0])):
            return "give the address as it was printed"
        return ""
    request_token = parse_qs(path.partition("?")[2]).get("token", [""])[0]
    if not hmac.compare_digest(request_token.encode(), token.encode()):
        return "the token is missing or wrong: give the address as it was printed"
    return ""


def limited_connection() -> "type[ServerConnection]":
    """A class of connections of which CONNECTIONS_MAX are open at a time.

    One more cuts the oldest that has not yet said what it wants. Without a limit, whoever reaches
    the port takes every file descriptor of the process. With TLS a connection opens after its
    handshake, which may take OPEN_S; more than HANDSHAKES_MAX in this time are refused.
    """
    from websockets.asyncio.server import ServerConnection
    from websockets.protocol import State

    connected: dict[ServerConnection, None] = {}
    accepted_s: dict[ServerConnection, float] = {}  # and not yet open

    class Limited(ServerConnection):
        def __init__(self, *about: Any, **more: Any) -> None:
            now_s = time.monotonic()
            for one in [one for one, at_s in accepted_s.items() if now_s - at_s > OPEN_S]:
                del accepted_s[one]
            if len(accepted_s) >= HANDSHAKES_MAX:
                raise ConnectionAbortedError("too many handshakes")  # the server closes it
            super().__init__(*about, **more)
            accepted_s[self] = now_s

        def connection_made(self, transport: BaseTransport) -> None:
            super().connection_made(transport)
            accepted_s.pop(self, None)
            connected[self] = None
            if len(connected) > CONNECTIONS_MAX:
                silent = (c for c in connected if c.protocol.state is State.CONNECTING)
                oldest = next(silent)
                del connected[oldest]
                oldest.transport.abort()

        def connection_lost(self, exc: Exception | None) -> None:
            connected.pop(self, None)
            super().connection_lost(exc)

    return Limited


def is_page_of_this_computer(origin: str) -> bool:
    """Whether an origin is that of a web server on this computer."""
    scheme, _, host = origin.partition("://")
    return scheme in ("http", "https") and is_loopback(_host_of(host))


def _host_of(text: str) -> str | None:
    """The host of `HOST[:PORT]`; None if it is not of this form."""
    match = HOST.fullmatch(text)
    return match and (match["v6"] or match["name"])
