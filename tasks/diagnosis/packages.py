"""Checks of Python and of the installed packages: those that Cursus requires, and the versions of requirements.lock."""

from __future__ import annotations

import importlib.metadata
import platform
import sys
from collections.abc import Iterator
from pathlib import Path

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from tasks.diagnosis.check import Check, State

DISTRIBUTION = "cursus"
LOCK = "requirements.lock"
MOST_NAMED = 5
"""Packages that a sentence names; the rest is counted."""


def python() -> Check:
    """Whether this Python is one that Cursus supports."""
    version = platform.python_version()
    required = importlib.metadata.metadata(DISTRIBUTION)["Requires-Python"] or ""
    if not SpecifierSet(required).contains(version, prereleases=True):
        return Check("python", State.PROBLEM, f"Cursus needs Python {required}, and this is {version}: install another")
    return Check("python", State.OK, f"{version}, {sys.executable}")


def versions() -> Check:
    """Whether every package that Cursus requires is installed, in a version that it is known to work with."""
    problems = list(_unmet(importlib.metadata.requires(DISTRIBUTION) or []))
    if problems:
        again = "install Cursus again (pip install cursus; in a checkout: make run)"
        return Check("versions", State.PROBLEM, f"{_listed(problems)}; {again}")
    version = importlib.metadata.version(DISTRIBUTION)
    return Check("versions", State.OK, f"cursus {version} and all packages that it requires")


def _unmet(requirements: list[str]) -> Iterator[str]:
    for line in requirements:
        requirement = Requirement(line)
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        try:
            installed = importlib.metadata.version(requirement.name)
        except importlib.metadata.PackageNotFoundError:
            yield f"{requirement.name} is not installed"
            continue
        if not requirement.specifier.contains(installed, prereleases=True):
            yield f"{requirement.name} {installed} is not {requirement.specifier}"


def lock(folder: Path) -> Check:
    """Whether installed packages have the versions of `requirements.lock` in `folder`, those that the tests have."""
    file = folder / LOCK
    if not file.is_file():
        return Check("lock", State.NOTE, f"there is no {LOCK}: versions are those that pip chose")
    locked = dict(_locked(file))
    other = []
    for distribution in importlib.metadata.distributions():
        name = canonicalize_name(distribution.metadata["Name"] or "")
        # a local build's suffix (+cpu) is no other version
        if name in locked and Version(distribution.version).public != Version(locked[name]).public:
            other.append(f"{name} {distribution.version} instead of {locked[name]}")
    if other:
        why = "the tests run with the locked versions, and fingerprints depend on some of them"
        return Check("lock", State.NOTE, f"{_listed(sorted(set(other)))}: {why}; pip install -c {file} …")
    return Check("lock", State.OK, f"all installed packages have the versions of {file}")


def _locked(file: Path) -> Iterator[tuple[str, str]]:
    for line in file.read_text(encoding="utf-8").splitlines():
        name, pinned, version = line.partition("#")[0].partition("==")
        if pinned:
            yield canonicalize_name(name.strip()), version.partition(";")[0].strip()


def _listed(parts: list[str]) -> str:
    left = len(parts) - MOST_NAMED
    return ", ".join(parts[:MOST_NAMED]) + (f" and {left} more" if left > 0 else "")
