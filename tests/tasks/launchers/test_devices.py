"""A device is never taken twice, and a killed holder leaves it free."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from pipelines.errors import CursusError
from tasks.launchers.devices import VARIABLE, devices, devices_held
from tests.steps import ROOT

HOLD = """
import sys
from tasks.launchers.devices import devices_held
with devices_held(int(sys.argv[1]), lambda line: print("waits", flush=True)) as held:
    print("holds", *held, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Locks of the test's own, on a machine that shares two devices."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setenv(VARIABLE, "2")


def hold(count: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", HOLD, str(count)],
        cwd=ROOT, env=os.environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


def says(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


@pytest.mark.usefixtures("folder")
def test_the_third_waits_until_one_of_two_is_killed() -> None:
    holders = [hold(1), hold(1)]
    try:
        assert {says(holder) for holder in holders} == {"holds 0", "holds 1"}
        both, one = hold(2), hold(1)
        holders += [both, one]
        assert says(both) == says(one) == "waits"
        holders[0].kill()
        assert says(one).startswith("holds"), "one that wants both holds none of them while it waits"
        one.communicate()
        holders[1].communicate()
        assert says(both) == "holds 0 1"
        both.communicate()
    finally:
        for holder in holders:
            holder.kill()
            holder.communicate()


@pytest.mark.usefixtures("folder")
def test_what_the_machine_does_not_have_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        pytest.raises(CursusError, match="3 devices are requested, but this machine has 2: 0, 1"),
        devices_held(3, print),
    ):
        pass
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,7")
    assert devices() == ("4", "7")
    monkeypatch.setenv(VARIABLE, "both")
    with pytest.raises(CursusError, match="CURSUS_DEVICES is the number"):
        devices()
