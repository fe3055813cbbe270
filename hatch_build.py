"""Builds the simulated driver board into wheels: the firmware compiled for the machine at hand."""

import os
import platform
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
        compiler = os.environ.get("CC", "cc")
        for tool in ("make", compiler):
            if shutil.which(tool) is None:
                self.app.abort(
                    f"'{tool}' not found: the firmware is compiled into the wheel: install it"
                )
        self._folder = tempfile.TemporaryDirectory()
        # The board's own image travels wherever the wheel was built with its compiler at hand.
        chip = shutil.which("avr-gcc") is not None
        products = ["libboard.so"] if os.name == "nt" else ["libboard.so", "board_pty"]
        if chip:
            products += ["board.elf", "board.hex", "arduino.elf", "arduino.hex"]
        folder = Path(self._folder.name)
        made = {name: (folder / name).as_posix() for name in products}
        variables = [f"BUILD={folder.as_posix()}", f"CC={compiler}"]
        subprocess.run(
            ["make", "--silent", "-C", "firmware", *variables, *made.values()],
            cwd=self.root,
            check=True,
        )
        for name, path in made.items():
            build_data["force_include"][path] = f"hil/firmware/{name}"
        # The compiler makes code for this processor, whatever the interpreter was built for.
        named = sysconfig.get_platform().replace("universal2", platform.machine())
        build_data["pure_python"] = False
        build_data["tag"] = "py3-none-" + named.replace("-", "_").replace(".", "_")

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if version != "editable":
            self._folder.cleanup()
