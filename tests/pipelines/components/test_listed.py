"""Names in error messages."""

from __future__ import annotations

from pipelines.components import listed


def test_many_names_are_not_all_written() -> None:
    names = [f"class {number}" for number in range(500)]
    assert listed(names[:21]) == ", ".join(names[:21])
    assert listed(names) == f"{', '.join(names[:20])} and 480 more" and listed([]) == ""
