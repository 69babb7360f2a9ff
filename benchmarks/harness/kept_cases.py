"""Cases that an interrupted measurement had finished: the next attempt at the same commit takes them over."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from pydantic import TypeAdapter

from benchmarks.checkouts import ROOT
from benchmarks.harness.benchmark import Setting
from benchmarks.harness.paced import Paces
from pipelines.lineage.disk import write_text_atomically

PACES = TypeAdapter(Paces)


def folder_of(name: str, commit: str) -> Path | None:
    """Where the cases of a benchmark are kept until its record is written; None for a modified tree, whose cases are
    not known to be of one code."""
    return None if commit.endswith("+") else ROOT / ".cursus" / "benchmarks" / f"{name}-{commit}"


def kept(setting: Setting, case: str, take: Callable[[], Paces]) -> Paces:
    """The turns of a case: those of an earlier attempt that finished it, else what `take` measures now."""
    if setting.kept is None:
        return take()
    path = setting.kept / f"{re.sub(r'[^A-Za-z0-9-]+', '_', case)}.json"
    if path.exists():
        return PACES.validate_json(path.read_bytes())
    paces = take()
    if not paces.failed:
        setting.kept.mkdir(parents=True, exist_ok=True)
        write_text_atomically(path, PACES.dump_json(paces).decode(), path.with_suffix(".part"))
    return paces
