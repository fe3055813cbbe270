"""The result of a run in the XML format of JUnit, which services for continuous integration read.

Format: https://github.com/testmoapp/junitxml; a run is a suite, an expectation a test case.
"""

from pathlib import Path
from xml.etree import ElementTree

from hil.config.values import Figures
from hil.errors import ConfigError
from hil.record.summary import expectation_lines


def check(path: Path) -> None:
    """Refuse a file that cannot be written, before the run; remove the result of an older one.

    A run that ends without a result leaves none: a service would take the older one for its own.

    Raises
    ------
    ConfigError
    """
    if path.suffix.lower() != ".xml":
        raise ConfigError(f"--junit {path}: give the name of a file that ends with .xml")
    if path.is_dir() or not path.parent.is_dir():
        what = "a folder" if path.is_dir() else f"no folder {path.parent}"
        raise ConfigError(f"--junit {path}: {what}: give the name of a file")
    try:
        path.resolve().unlink(missing_ok=True)  # a link goes on leading to it
    except OSError as error:
        raise ConfigError(f"--junit {path}: cannot be written ({error.strerror})") from None


def write(path: Path, name: str, summary: Figures) -> None:
    """Write the result of a run.

    Without an expectation of its outcome, the run must also be complete.

    Raises
    ------
    ConfigError
        The file cannot be written.
    """
    rows = summary.get("expectations", [])
    cases = [
        (f"{row['what']}, {row['bounds']}", "" if row["passed"] else line)
        for row, line in zip(rows, expectation_lines(summary), strict=True)
    ]
    if all(row["what"] != "outcome" for row in rows):
        causes = [cause["text"] for cause in summary["causes"]] or [summary["error"]]
        whole = summary["outcome"] == "complete"
        text = "" if whole else ": ".join([summary["outcome"], *filter(None, causes)])
        cases.insert(0, ("outcome, complete", text))
    seconds = f"{summary['duration_s']:.3f}"
    failures = str(sum(bool(text) for _, text in cases))
    counts = {"tests": str(len(cases)), "failures": failures, "errors": "0", "time": seconds}
    suites = ElementTree.Element("testsuites", counts)
    suite = ElementTree.SubElement(suites, "testsuite", {"name": name, **counts})
    for case, text in cases:
        names = {"name": case, "classname": name, "time": seconds}
        element = ElementTree.SubElement(suite, "testcase", names)
        if text:
            ElementTree.SubElement(element, "failure", {"message": text}).text = text
    ElementTree.indent(suites)
    try:
        ElementTree.ElementTree(suites).write(path, encoding="utf-8", xml_declaration=True)
    except OSError as error:
        raise ConfigError(f"--junit {path}: cannot be written ({error.strerror})") from None
