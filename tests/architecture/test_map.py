"""The picture of the rooms is the picture of this code."""

from __future__ import annotations

import pytest

from tests.architecture.map import PAGE, ROOT, groups, render, rows

ACCELERATORS = ROOT / "pipelines" / "parts" / "accelerators"


@pytest.mark.skipif(not list(ACCELERATORS.glob("*/__init__.py")), reason="the map counts their modules, too")
def test_the_map_is_fresh() -> None:
    assert PAGE.read_text(encoding="utf-8") == render(), "run: make map"


def test_rooms_in_a_circle_are_one_group_and_rows_import_downwards() -> None:
    imports = {"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set(), "e": {"d"}}
    assert sorted(groups(imports)) == [("a",), ("b", "c"), ("d",), ("e",)]
    assert rows(imports) == [[("a",)], [("b", "c"), ("e",)], [("d",)]]
