"""A claim is measured and recorded by a flow, and shown from the store after that."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.flows.conftest import Cursus, FirstRun, command_line, users_shell, write_computed

CLAIM = ("claim", "ngram/steep_to_three", "--data", "small")
"""Counts, which take seconds."""


@pytest.fixture(scope="module")
def checkout(first: FirstRun, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout of its own: other tests count the runs of the first one."""
    return write_computed(tmp_path_factory.mktemp("claim"), first, tmp_path_factory)


@pytest.fixture(scope="module")
def cursus(checkout: Path, server: dict[str, str]) -> Cursus:
    return command_line(checkout, users_shell(checkout) | server)


def test_a_claim_is_measured_recorded_and_then_cached(cursus: Cursus, checkout: Path) -> None:
    done = cursus(*CLAIM)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 of 3 steps to compute" in done.stdout
    (path,) = (checkout / "docs" / "claims").glob("ngram.steep_to_three.small.json")
    record = json.loads(path.read_text())
    assert f"verdict   {record['verdict']}" in done.stdout and "ngram/steep_to_three" not in done.stderr
    again = cursus(*CLAIM)
    assert again.returncode == 0 and "to compute" not in again.stdout
    assert "imported:\n" in again.stderr or "prefect" not in again.stderr, "no flow was started"
    assert again.stdout.partition("measured")[2] == done.stdout.partition("measured")[2]
    assert json.loads(path.read_text())["verdict"] == record["verdict"]
