"""VISA resources at which a bench supply may be, such as serial lines and USB instruments."""

from importlib.util import find_spec

from hil.errors import install

LAN = "on a LAN by its address, as TCPIP::ADDRESS::5025::SOCKET"


def visa_resources() -> tuple[list[str], str]:
    """Names of the resources found, and the reason if there are none.

    It does not search the LAN, because that would send queries to all its devices.
    """
    if find_spec("pyvisa_py") is None:
        return [], f"bench supplies need an extra: {install('supply')}"
    from pyvisa_py.sessions import Session

    resources: list[str] = []
    for (interface, _), session in Session.iter_valid_session_classes():
        if interface.name in ("asrl", "usb", "gpib"):
            resources += session.list_resources()
    return sorted(resources), "" if resources else f"no VISA resources; a supply is named {LAN}"


def resources_as_text(resources: list[str], why_none: str) -> str:
    """One line a resource."""
    if not resources:
        return why_none
    return "\n".join(f"{name:<40} VISA" for name in resources)
