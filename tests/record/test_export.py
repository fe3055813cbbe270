"""What an export may not replace."""

import json
from types import SimpleNamespace

import pytest

from hil.errors import ConfigError
from hil.record.export import _imported, export


def test_an_export_takes_the_name_of_no_recording(all_on, tmp_path):
    with pytest.raises(ConfigError, match=r"other.h5: a recording: name it other.csv"):
        export(all_on, "csv", tmp_path / "other.h5")
    assert not list(tmp_path.iterdir())


def test_every_file_that_a_recording_was_imported_from_is_known():
    files = [{"file": "a.csv", "sha256": "12"}, {"file": "b.csv", "sha256": "34"}]
    run = SimpleNamespace(attrs={"imported": json.dumps({"files": files})})
    assert _imported(run) == {"12", "34"}
    assert _imported(SimpleNamespace(attrs={})) == set()
