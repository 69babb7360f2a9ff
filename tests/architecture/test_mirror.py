"""Tests mirror the code: a room of flows/, tasks/ or pipelines/ has a folder of tests, such a folder has a room."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.steps import ROOT

FLOORS = ("flows", "tasks", "pipelines")
ELSEWHERE: Mapping[str, tuple[str, ...]] = {
    # decisions are written by promotions, and read by those that follow
    "tasks/decisions": ("tests/tasks/promotion", "tests/flows/test_promote.py"),
    # what is displayed is looked at where it appears: in a log, in a browser, in Prefect's artifacts
    "tasks/display": (
        "tests/tasks/launchers/test_following.py",
        "tests/tasks/servers/test_served_pages.py",
        "tests/pipelines/safety/test_markdown.py",
    ),
    # a folder is opened by the tests of what saves it, and compared with the network that it was
    "pipelines/models": ("tests/pipelines/training", "tests/contracts", "tests/reference"),
}
"""Room → the tests of it, where they are not in a folder of its own."""


def rooms(root: Path) -> set[str]:
    """The packages directly inside the floors."""
    return {
        path.parent.relative_to(root).as_posix() for floor in FLOORS for path in (root / floor).glob("*/__init__.py")
    }


def mirrored(root: Path) -> set[str]:
    """The folders directly inside those of the floors' tests that have a module of tests at any depth."""
    folders = {path for floor in FLOORS for path in (root / "tests" / floor).iterdir() if path.is_dir()}
    return {path.relative_to(root / "tests").as_posix() for path in folders if any(path.rglob("test_*.py"))}


def test_rooms_have_tests_and_tests_have_rooms() -> None:
    assert rooms(ROOT) - mirrored(ROOT) == {*ELSEWHERE}, "tests/<floor>/<room> is missing, or is no exception any more"
    assert mirrored(ROOT) <= rooms(ROOT), "tests of a room that is none"


@pytest.mark.parametrize("room", ELSEWHERE)
def test_the_tests_of_a_room_without_a_folder_use_it(room: str) -> None:
    for name in ELSEWHERE[room]:
        path = ROOT / name
        modules = [path] if path.is_file() else [*path.rglob("test_*.py")]
        assert any(room.replace("/", ".") in module.read_text(encoding="utf-8") for module in modules), name


def test_the_comparison_finds_what_is_missing(tmp_path: Path) -> None:
    for name in ("flows/cli", "tasks/a", "tasks/b", "pipelines/c"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "__init__.py").touch()
    for name in ("flows/cli/test_run.py", "tasks/a/conftest.py", "tasks/b/deep/test_b.py", "pipelines/d/test_d.py"):
        (tmp_path / "tests" / name).parent.mkdir(parents=True)
        (tmp_path / "tests" / name).touch()
    assert rooms(tmp_path) - mirrored(tmp_path) == {"tasks/a", "pipelines/c"}
    assert mirrored(tmp_path) - rooms(tmp_path) == {"pipelines/d"}
