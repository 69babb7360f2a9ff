"""Installed runtime dependencies of Cursus, and their Python files.

Requirements are followed without extras, so that installing the test tools does not change the corpus.
"""

from __future__ import annotations

import platform
import re
import sysconfig
from functools import cache
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement

from pipelines.errors import DataError

PROJECT = "cursus"
OF_AN_EXTRA = re.compile(r""";\s*extra\s*==\s*(['"])[^'"]*\1\s*$""")
"""A requirement of an extra and under no other condition: there are thousands, and parsing them takes a while."""
_NOT_DOCUMENTATION = {"test", "tests", "idle_test", "lib2to3"}


@cache
def runtime_closure() -> dict[str, Distribution]:
    """Runtime dependencies of Cursus, direct and indirect, by normalised name, sorted.

    DataError when Cursus or one of its requirements is not installed.
    """
    distributions_by_name: dict[str, Distribution] = {}
    waiting = [PROJECT]
    while waiting:
        name = re.sub(r"[-_.]+", "-", waiting.pop()).lower()
        if name in distributions_by_name:
            continue
        try:
            distributions_by_name[name] = distribution(name)
        except PackageNotFoundError:
            raise DataError(f"the package {name!r} is required but not installed: run 'pip install -e .'") from None
        for text in _header(distributions_by_name[name], "Requires-Dist"):
            if OF_AN_EXTRA.search(text):
                continue
            requirement = Requirement(text)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                waiting.append(requirement.name)
    del distributions_by_name[PROJECT]
    return dict(sorted(distributions_by_name.items()))


def versions() -> dict[str, str]:
    """Versions of Python and of each distribution, on which the documentation corpus depends."""
    return {"python": platform.python_version()} | {
        name: _header(item, "Version")[0] for name, item in runtime_closure().items()
    }


def _header(item: Distribution, name: str) -> list[str]:
    """Values of a header of a distribution's metadata.

    Read without `Distribution.metadata`, which parses the whole description: a third of a second of every command.
    """
    text = item.read_text("METADATA")
    if text is None:  # not from a wheel
        return [str(value) for value in item.metadata.get_all(name) or []]
    head = re.sub(r"\n[ \t]+", " ", text.partition("\n\n")[0])
    return [line.partition(":")[2].strip() for line in head.splitlines() if line.startswith(f"{name}:")]


def python_files(distributions: set[str] | None = None) -> dict[str, Path]:
    """Modules of some distributions (default: all, and the standard library), by name in the corpus, without tests.

    A name is the path below site-packages, or below `python/` for the standard library.
    """
    files: dict[str, Path] = {}
    for name, item in runtime_closure().items():
        if distributions is not None and name not in distributions:
            continue
        if item.files is None:
            raise DataError(f"the package {name!r} has no list of its files: reinstall it with pip")
        for file in item.files:
            if file.suffix == ".py" and file.parts[0] != ".." and not _NOT_DOCUMENTATION & set(file.parts):
                files[file.as_posix()] = Path(str(file.locate()))
    if distributions is None:
        library = Path(sysconfig.get_path("stdlib"))
        for path in library.rglob("*.py"):
            parts = path.relative_to(library).parts
            if not (_NOT_DOCUMENTATION | {"site-packages", "dist-packages", "__pycache__"}) & set(parts):
                files["python/" + "/".join(parts)] = path
    return dict(sorted(files.items()))
