"""`pytest --hil-contract mine.py`: the contract of a plug-in class, as tests.

This is a plugin of pytest; `hil.runs.contract_checks` has the checks. With `--hil-experiment` the
classes get the values and the rig of that experiment, else default values and a substitute plant.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from hil.errors import ConfigError, DeviceError


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("hil", "plug-in controllers, references, models and devices")
    group.addoption("--hil-contract", metavar="FILE.py", help="check the classes of this file")
    group.addoption(
        "--hil-experiment", metavar="EXPERIMENT.toml", help="use the values and rig of this one"
    )
    group.addoption(
        "--hil-open", action="store_true", help="open real devices instead of calling pretend()"
    )


def pytest_configure(config: pytest.Config) -> None:
    chosen = config.getoption("--hil-contract")
    if chosen is None:
        return
    file = Path(chosen)
    if not file.is_file():
        raise pytest.UsageError(f"--hil-contract {chosen}: no such file")
    config.args[:] = [str(file)]  # collects nothing else


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makemodule(
    module_path: Path, parent: pytest.Collector
) -> "ContractFile | None":
    chosen = parent.config.getoption("--hil-contract")
    if chosen is None or module_path != Path(chosen).resolve():
        return None
    made: ContractFile = ContractFile.from_parent(parent, path=module_path)
    return made


class ContractFile(pytest.Module):
    """A plug-in file as a collection of tests."""

    def collect(self) -> Iterable[pytest.Item]:
        from hil.runs.contract_checks import checks_of

        experiment = self.config.getoption("--hil-experiment")
        opened = bool(self.config.getoption("--hil-open"))
        try:
            checks = checks_of(self.path, None if experiment is None else Path(experiment), opened)
        except ConfigError as error:
            yield ContractItem.from_parent(self, name="it is loaded", failure=error)
            return
        for name, check in checks:
            yield ContractItem.from_parent(self, name=name, check=check)


class ContractItem(pytest.Item):
    """One check of the contract as a test."""

    def __init__(self, *, check: Any = None, failure: Exception | None = None, **how: Any) -> None:
        super().__init__(**how)
        self._check = check
        self._failure = failure

    def runtest(self) -> None:
        from hil.plugins.code import watched

        if self._failure is not None:
            raise self._failure
        with watched():
            self._check()

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], *_: Any) -> Any:
        if isinstance(excinfo.value, ConfigError | DeviceError | AssertionError):
            return str(excinfo.value)
        return super().repr_failure(excinfo)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None, self.name
