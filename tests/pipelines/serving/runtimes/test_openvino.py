"""The OpenVINO runtimes, in a process of their own: their libraries break later DataLoaders with worker processes."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.steps import ROOT

PACKAGES = ("openvino", "nncf")
TESTS = ("test_every_installed_runtime_answers_as_float32_does", "test_nothing_of_openvino_phones_home")


def installed() -> bool:
    found = {distribution.name for distribution in importlib.metadata.distributions()}
    return found >= set(PACKAGES)


@pytest.mark.timeout(600)
@pytest.mark.skipif(
    not installed(), reason="OpenVINO is not installed: pip install -c requirements.lock -e '.[openvino]'"
)
def test_they_answer_as_float32_does_and_phone_nobody(tmp_path: Path) -> None:
    names = [f"tests/pipelines/serving/runtimes/test_export.py::{name}" for name in TESTS]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-v", "--basetemp", str(tmp_path / "own"), *names],
        cwd=ROOT,
        env={**os.environ, "CURSUS_TEST_OPENVINO": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert f"{len(TESTS)} passed" in done.stdout, done.stdout[-2000:]
