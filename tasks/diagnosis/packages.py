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

from pipelines.messages.translation import message
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
        line = "Cursus needs Python {required}, and this is {version}: install another"
        return Check("python", State.PROBLEM, message(line, required=required, version=version))
    return Check("python", State.OK, f"{version}, {sys.executable}")


def versions() -> Check:
    """Whether every package that Cursus requires is installed, in a version that it is known to work with."""
    problems = list(_unmet(importlib.metadata.requires(DISTRIBUTION) or []))
    if problems:
        line = "{problems}; install Cursus again (pip install cursus; in a checkout: make run)"
        return Check("versions", State.PROBLEM, message(line, problems=_listed(problems)))
    version = importlib.metadata.version(DISTRIBUTION)
    return Check("versions", State.OK, message("cursus {version} and all packages that it requires", version=version))


def _unmet(requirements: list[str]) -> Iterator[str]:
    for line in requirements:
        requirement = Requirement(line)
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        try:
            installed = importlib.metadata.version(requirement.name)
        except importlib.metadata.PackageNotFoundError:
            yield message("{package} is not installed", package=requirement.name)
            continue
        if not requirement.specifier.contains(installed, prereleases=True):
            yield message(
                "{package} {installed} is not {specifier}",
                package=requirement.name,
                installed=installed,
                specifier=requirement.specifier,
            )


def lock(folder: Path) -> Check:
    """Whether installed packages have the versions of `requirements.lock` in `folder`, those that the tests have."""
    file = folder / LOCK
    if not file.is_file():
        return Check("lock", State.NOTE, message("there is no {file}: versions are those that pip chose", file=LOCK))
    locked = dict(_locked(file))
    other = []
    for distribution in importlib.metadata.distributions():
        name = canonicalize_name(distribution.metadata["Name"] or "")
        # a local build's suffix (+cpu) is no other version
        if name in locked and Version(distribution.version).public != Version(locked[name]).public:
            versions = {"version": distribution.version, "locked": locked[name]}
            other.append(message("{package} {version} instead of {locked}", package=name, **versions))
    if other:
        line = (
            "{packages}: the tests run with the locked versions, and fingerprints depend on some of them; "
            "pip install -c {file} …"
        )
        return Check("lock", State.NOTE, message(line, packages=_listed(sorted(set(other))), file=file))
    return Check("lock", State.OK, message("all installed packages have the versions of {file}", file=file))


def _locked(file: Path) -> Iterator[tuple[str, str]]:
    for line in file.read_text(encoding="utf-8").splitlines():
        name, pinned, version = line.partition("#")[0].partition("==")
        if pinned:
            yield canonicalize_name(name.strip()), version.partition(";")[0].strip()


def _listed(parts: list[str]) -> str:
    left, named = len(parts) - MOST_NAMED, ", ".join(parts[:MOST_NAMED])
    return message("{named} and {left} more", named=named, left=left) if left > 0 else named
