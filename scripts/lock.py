"""Makes requirements.lock, and says whether it is of today's pyproject.toml."""

import argparse
import hashlib
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOCK = "requirements.lock"
HEAD = """\
# Every package of the project's own environment, pinned, with the hashes of its files: scripts/lock
# made it of the requirements of pyproject.toml with SHA-256 {digest}
"""
COMPILE = (
    "pip", "compile", "pyproject.toml", "--all-extras", "--group", "dev", "--universal",
    "--python-version", "3.11", "--no-header", "--generate-hashes", "--quiet",
)  # fmt: skip


def digest(root: Path) -> str:
    """SHA-256 of everything that pyproject.toml requires."""
    tables = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    project = tables["project"]
    names = ("requires-python", "dependencies", "optional-dependencies")
    required = [*(project[name] for name in names), tables["dependency-groups"]]
    return hashlib.sha256(json.dumps(required, sort_keys=True).encode()).hexdigest()


def problem(root: Path) -> str:
    """Why the lock is not of today's pyproject.toml, as a line; empty if it is."""
    text = (root / LOCK).read_text(encoding="utf-8")
    made_of = re.search(r"SHA-256 (\w+)", text)
    if made_of is None or made_of[1] != digest(root):
        return f"{LOCK}: is not of today's pyproject.toml: scripts/lock"
    unhashed = re.findall(r"^([\w.-]+==[^ \\\n]+(?: ;[^\\\n]*)?)$", text, re.M)
    return f"{LOCK}: {unhashed[0]} has no hash: scripts/lock" if unhashed else ""


def main() -> int:
    """Make the lock; with --check only say whether it is current."""
    parser = argparse.ArgumentParser(prog="scripts/lock", description=__doc__)
    parser.add_argument("--check", action="store_true", help="only say whether it is current")
    parser.add_argument("--upgrade", action="store_true", help="take the newest versions")
    args = parser.parse_args()
    if args.check:
        if said := problem(ROOT):
            print(f"scripts/lock: {said}", file=sys.stderr)
        return 1 if said else 0
    newest = ("--upgrade",) if args.upgrade else ()
    done = subprocess.run(
        ["uv", *COMPILE, *newest, "--output-file", LOCK],
        cwd=ROOT, check=False, capture_output=True, text=True,
    )  # fmt: skip
    if done.returncode:
        print(f"scripts/lock: uv: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr)
        return 1
    path = ROOT / LOCK
    text = HEAD.format(digest=digest(ROOT)) + path.read_text(encoding="utf-8")
    path.write_text(text, encoding="utf-8")
    print(f"{LOCK}: {len(re.findall('^[^ #].*==', text, re.M))} packages")
    return 0


if __name__ == "__main__":
    sys.exit(main())
