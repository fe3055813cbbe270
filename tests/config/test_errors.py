"""The remedies of errors fit the installation that shows them."""

import pytest

from hil import errors


def test_in_a_clone_an_extra_is_added_by_its_script():
    assert errors.install("gui", "daq") == "scripts/setup gui,daq"


def test_beside_a_wheel_and_on_windows_an_extra_is_added_by_pip(tmp_path, monkeypatch):
    with monkeypatch.context() as on_windows:
        on_windows.setattr("sys.platform", "win32")
        assert errors.install("gui") == "pip install 'hil-arrays[gui]'"
    monkeypatch.setattr(errors, "__file__", str(tmp_path / "site-packages/hil/errors.py"))
    with pytest.raises(errors.ConfigError, match=r"^a crate needs an extra: pip install 'hil-ar"):
        raise errors.missing_extra("a crate", "crate")
