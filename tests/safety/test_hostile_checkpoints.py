"""Checkpoints made to exhaust a machine or to run code: each is refused with its file and field, within seconds, and
before memory is taken for what it claims."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from typing import Any

import pytest

from tests.safety.hostile_folders import HARMLESS, HOSTILE, ONLY_WHERE_BUILT
from tests.steps import ROOT

MOST_SECONDS = 10
"""What all openers together may take for one folder, on a machine that runs other tests as well."""
MOST_GROWTH = 256 * 2**20
"""What all hostile folders together may add to the peak of memory, bytes; a good one has been opened before."""


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What came of every attack, in one process."""
    scratch = tmp_path_factory.mktemp("hostile")
    done = subprocess.run(
        [sys.executable, "-m", "tests.safety.attack_every_opener", str(scratch)],
        capture_output=True, text=True, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    attacked: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return attacked


@pytest.mark.parametrize("name", HARMLESS)
def test_a_folder_without_fault_is_opened(name: str, attacked: dict[str, Any]) -> None:
    assert set(attacked["results"][name]["messages"].values()) == {None}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_folder_is_refused_by_whatever_opens_it(name: str, attacked: dict[str, Any]) -> None:
    result = attacked["results"][name]
    for opener, message in result["messages"].items():
        if opener == "recipe" and name in ONLY_WHERE_BUILT:
            continue
        assert message and re.search(HOSTILE[name][1], message), f"{opener}: {message}"
    assert result["seconds"] < MOST_SECONDS


def test_nothing_ran_and_nothing_was_allocated(attacked: dict[str, Any]) -> None:
    assert not attacked["harmed"]
    assert attacked["growth"] < MOST_GROWTH
