"""Builds the simulated driver board into wheels: the firmware compiled for the machine at hand."""

import shutil
import subprocess
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class FirmwareHook(BuildHookInterface):  # type: ignore[type-arg]
    """Puts the firmware's products into the wheel and names the platform in its tag."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return  # a checkout uses firmware/build, which scripts/environment makes
        for tool in ("make", "cc"):
            if shutil.which(tool) is None:
                self.app.abort(
                    f"'{tool}' not found: the firmware is compiled into the wheel: install it"
                )
        self._folder = tempfile.TemporaryDirectory()
        # The board's own image travels wherever the wheel was built with its compiler at hand.
        chip = shutil.which("avr-gcc") is not None
        targets = ["host", "avr"] if chip else ["host"]
        command = ["make", "--silent", "-C", "firmware", f"BUILD={self._folder.name}", *targets]
        subprocess.run(command, cwd=self.root, check=True)
        images = ("board.elf", "board.hex", "arduino.elf", "arduino.hex") if chip else ()
        for name in ("libboard.so", "board_pty", *images):
            made = str(Path(self._folder.name) / name)
            build_data["force_include"][made] = f"hil/firmware/{name}"
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if version != "editable":
            self._folder.cleanup()
