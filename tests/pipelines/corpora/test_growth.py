"""Sources four times as large: the data steps lose nothing of them and need a bounded memory more, with progress."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.pipelines.corpora.growth import FOUR, KINDS
from tests.steps import ROOT


class Growth(NamedTuple):
    """What is four times as much, and what that may cost."""

    quantities: tuple[str, ...]
    memory: int
    """Most bytes by which the largest memory of the steps may grow."""
    progress: bool
    """Whether there is more of it than one part of the work, so that there is progress to report."""


GROWTH: Mapping[str, Growth] = {
    # 30 MB of text: 18 MiB, and 157 MiB for 24 MB where a bucket of `split` holds all texts
    "text": Growth(("texts",), 40 * 2**20, True),
    "files": Growth(("files", "texts"), 80 * 2**20, True),
    # 4.3 MB of a document that is not cut: 126 MiB, and 263 MiB where it is hashed at once
    "document": Growth(("longest",), 180 * 2**20, False),
    "classes": Growth(("classes",), 80 * 2**20, False),
}


@pytest.mark.parametrize("kind", KINDS)
def test_memory_is_bounded(kind: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.pipelines.corpora.growth", kind, str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    few, many = (json.loads(line) for line in done.stdout.splitlines())
    growth = GROWTH[kind]
    for quantity in growth.quantities:
        assert many[quantity] == pytest.approx(FOUR * few[quantity], rel=0.05), quantity
    assert many["peak"] - few["peak"] < growth.memory, f"{few['peak']:,} bytes, then {many['peak']:,}"
    assert not growth.progress or many["progress"] > few["progress"]
