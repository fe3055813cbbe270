"""The arrows between modules point one way; .importlinter says which."""

from importlinter.cli import lint_imports


def test_imports_keep_to_the_layers(monkeypatch, pytestconfig):
    monkeypatch.chdir(pytestconfig.rootpath)
    assert lint_imports(cache_dir=None, no_cache=True) == 0
