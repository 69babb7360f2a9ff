"""The newest versions that pyproject.toml allows, written to requirements.lock: `python -m tests.architecture.lock`.

pip resolves all dependencies and extras together as for an empty environment, and installs nothing. `make lock` keeps
the result only if all of `make check test` passes with it. Options are pip's own.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
LOCK = "requirements.lock"
LEFT_OUT = ("nvidia", "cuda", "triton", "pip==")
"""Beginnings of what only a build of torch for GPUs needs, which is not on every machine, and pip itself."""


class UnresolvedError(Exception):
    """pip found no versions; the message is its own."""


def requirements(root: Path) -> list[str]:
    """All dependencies and extras that pyproject.toml declares."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project.get("optional-dependencies", {}).values()
    return sorted({*project["dependencies"], *(line for extra in extras for line in extra)})


def resolved(lines: Sequence[str], options: Sequence[str]) -> list[str]:
    """`name==version` of everything that an empty environment would need. Raises UnresolvedError."""
    with tempfile.TemporaryDirectory() as folder:
        asked, report = Path(folder) / "asked.txt", Path(folder) / "report.json"
        asked.write_text("\n".join(lines) + "\n", encoding="utf-8")
        command = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--quiet"]
        command += ["--dry-run", "--ignore-installed", "--report", str(report), "--requirement", str(asked), *options]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise UnresolvedError(done.stderr.strip() or f"pip ended with status {done.returncode}")
        packages = [entry["metadata"] for entry in json.loads(report.read_text(encoding="utf-8"))["install"]]
    # torch's build (`+cpu`) is on one index only; without it, whichever build is there satisfies the constraint
    pinned = [f"{package['name']}=={package['version'].partition('+')[0]}" for package in packages]
    return sorted((line for line in pinned if not line.lower().startswith(LEFT_OUT)), key=str.upper)


def main(root: Path, options: Sequence[str]) -> int:
    """Write the lock of the checkout at `root` anew, below its own comment, and print what changed."""
    path = root / LOCK
    before = path.read_text(encoding="utf-8").splitlines()
    try:
        lines = resolved(requirements(root), options)
    except UnresolvedError as error:
        print(f"{LOCK} stays as it is, because no index gives its packages:\n{error}", file=sys.stderr)
        return 1
    comment = [line for line in before if line.startswith("#")]
    path.write_text("\n".join([*comment, *lines]) + "\n", encoding="utf-8")
    for sign, changed in (("-", set(before) - {*comment, *lines}), ("+", set(lines) - set(before))):
        for line in sorted(changed):
            print(sign, line)
    print(f"{LOCK}: {len(lines)} packages, {len(set(lines) - set(before))} of them changed or new")
    return 0


if __name__ == "__main__":
    sys.exit(main(ROOT, sys.argv[1:]))
