"""A file that is no TOML: its line, where reading stopped, and the usual cause."""

import tomllib

import pytest

from hil.config.files import read_toml
from hil.errors import ConfigError

MISTAKES = [
    ("duration_s = 8,0", "duration_s = 8»,0", "a decimal comma: write 8.0"),
    ("duration_s = 8,05  # s", "duration_s = 8»,05", "a decimal comma: write 8.05"),
    ("name = “steps”", "name = »“steps”", "typographic quotes: type straight ones"),
    ('file = "C:\\Users\\me"', "»", 'a backslash in "..." begins a special character'),
    ('name = "steps', 'name = "steps»', "a quote is missing at the end of the text"),
    ("name = 'steps", "name = 'steps»", "a quote is missing at the end of the text"),
    ("duration_s = 8 s", "duration_s = 8 »s", "a number has no unit, the key names it: write 8"),
    ("duration_s = 1.5ms", "»ms", "a number has no unit, the key names it: write 1.5"),
    ("x = True  # on", "x = »True", "true and false are written small"),
    ("kind = pid", "kind = »pid", 'text needs quotes: write "pid"'),
    ("port = COM3", "port = »COM3", 'text needs quotes: write "COM3"'),
    ("duration_s: 8.0", "duration_s»: 8.0", "a key and its value have = between them"),
    ("duration_s 8.0", "duration_s »8.0", "a key and its value have = between them"),
    ("duration_s =", "duration_s =»", "the value is missing"),
    ("duration_s = .5", "duration_s = ».5", "digits on both sides of its point"),
    ("duration_s = 5.", "duration_s = 5».", "digits on both sides of its point"),
    ("[reference", "[reference»", "a ] is missing"),
    ("[[steps]", "[[steps»]", "a ] is missing"),
    ("t_s = [0.5 3.0]", "t_s = [0.5 »3.0]", "values have commas between them and a ] at the end"),
    ("t_s = [0.5, 3.0", "t_s = [0.5, 3.0»", "values have commas between them and a ] at the end"),
    ("known = 2", "known = 2»", "this key or table is there twice"),
]


@pytest.mark.parametrize("after", ["\nother = 1\n", "\n", ""])
@pytest.mark.parametrize(("line", "shown", "cause"), MISTAKES)
def test_the_line_is_shown_with_a_mark_and_the_usual_cause(tmp_path, line, shown, cause, after):
    path = tmp_path / "x.toml"
    path.write_text(f"known = 1\n{line}{after}", encoding="utf-8")
    with pytest.raises(tomllib.TOMLDecodeError):
        tomllib.loads(path.read_text(encoding="utf-8"))
    with pytest.raises(ConfigError) as refused:
        read_toml(path)
    told = str(refused.value)
    assert told.startswith(f"{path}: line 2: not valid TOML at »: ")
    assert shown in told
    assert cause in told
    assert "\n" not in told


def test_another_mistake_is_told_in_the_words_of_the_reader(tmp_path):
    path = tmp_path / "x.toml"
    path.write_text("a = 1 = 2\n")
    with pytest.raises(ConfigError, match=r"line 1: not valid TOML at »: a = 1 »= 2: Expected"):
        read_toml(path)


def test_of_a_long_line_only_what_is_near_the_mark_is_shown(tmp_path):
    path = tmp_path / "x.toml"
    path.write_text(f"t_s = [{'1.0, ' * 5000}2.0 3.0{', 4.0' * 5000}]\n")
    with pytest.raises(ConfigError, match=r"\.\.\. .*2\.0 »3\.0.* \.\.\.: in a list") as refused:
        read_toml(path)
    assert len(str(refused.value)) < 300 + len(str(path))
