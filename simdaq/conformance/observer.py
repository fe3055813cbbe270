"""pytest plugin that runs inside NI's tests: records outcomes, starts the simulated gRPC server.

NI's tests start "NI gRPC Device Server", which exists for Windows only. The plugin gives them
`python -m simdaq --port 0` instead, which prints the same line when it listens.
"""

from __future__ import annotations

import json
import os
import re
import sys
from typing import Any

import pytest

RESULTS = "SIMDAQ_CONFORMANCE_RESULTS"
SERVER = "SIMDAQ_CONFORMANCE_SERVER"
_PROPERTY = re.compile(r"^(?:Property|Function): (\S+)", re.MULTILINE)
_CODE = re.compile(r"Status Code: (-?\d+)|status[ _]code[=:] ?(-?\d+)")


def pytest_collection_finish(session: pytest.Session) -> None:
    """Replace the look-up of NI's server in NI's helper module."""
    del session
    helper = sys.modules.get("tests._grpc_utils")
    server = os.environ.get(SERVER)
    if helper is not None and server:
        helper.GrpcServerProcess._get_grpc_server_exe = lambda _: server


@pytest.hookimpl(wrapper=True, tryfirst=True)  # sees what pytest makes of xfail
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    """Append one JSON line for every test that has an outcome."""
    report = yield
    outcome = _outcome(report)
    if outcome:
        line = {"test": item.nodeid, "outcome": outcome, "reason": _reason(report, call)}
        with open(os.environ[RESULTS], "a") as file:
            file.write(json.dumps(line) + "\n")
    return report


def _outcome(report: pytest.TestReport) -> str:
    if hasattr(report, "wasxfail") and report.outcome == "skipped":
        return "xfailed"
    if report.when == "call" and report.outcome != "failed":
        return str(report.outcome)
    if report.when == "call":
        return "failed"
    if report.outcome == "skipped":
        return "skipped"
    return "error" if report.outcome == "failed" else ""


def _reason(report: pytest.TestReport, call: pytest.CallInfo[None]) -> str:
    if hasattr(report, "wasxfail"):
        return str(report.wasxfail) or "expected to fail"
    if report.outcome == "skipped":
        text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        return text.removeprefix("Skipped: ").split("\n")[0]
    if call.excinfo is None:
        return ""
    error = call.excinfo.value
    code = getattr(error, "error_code", None)
    match = _CODE.search(str(error))
    if code is None and match is not None:
        code = match[1] or match[2]
    first = (str(error).strip().splitlines() or [""])[0][:160]
    named = _PROPERTY.search(str(error))
    about = f" [{named[1]}]" if named else ""
    return f"{code}: {first}{about}" if code is not None else f"{type(error).__name__}: {first}"
