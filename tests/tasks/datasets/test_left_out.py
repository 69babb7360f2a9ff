"""Lines of which texts and examples preparation dropped."""

from __future__ import annotations

from typing import Any

from pipelines.messages.translation import in_language
from tasks.datasets.left_out import left_out


def step(name: str, **tables: tuple[int, dict[str, int]]) -> dict[str, Any]:
    entries = {table: {"documents": number, "dropped": dropped} for table, (number, dropped) in tables.items()}
    return {"step": name, "tables": entries}


SUMMARY = {
    "tables": {
        "general": {"documents": 90},
        "train": {"documents": 20},
        "test": {"documents": 46},
        "pairs.test": {"documents": 9},
    },
    "steps": [
        step("collect", general=(100, {}), task=(1_240, {}), pairs=(10, {})),
        step("deduplicate", general=(95, {"near copy in general": 5}), task=(1_220, {"test: same text in test": 12})),
        step(
            "decontaminate",
            general=(95, {}),
            task=(1_210, {"train: overlap": 3, "test: overlap": 2}),
            pairs=(9, {"test: same text in test": 1}),
        ),
    ],
}


def test_every_table_that_lost_texts_has_a_line_with_the_reasons() -> None:
    assert left_out(SUMMARY) == [
        "left out  general: 5 of 100 (5 near copy in general)",
        "left out  test: 14 of 60 (12 same text in test, 2 overlap)",
        "left out  train: 3 (3 overlap)",
        "left out  pairs.test: 1 of 10 (1 same text in test)",
    ]
    assert [line.split()[2] for line in left_out(SUMMARY, labelled=True)] == ["test:", "train:", "pairs.test:"]
    with in_language("zh"):
        assert left_out(SUMMARY)[1] == "舍弃  测试集：60 条中的 14 条（与测试集中的文本相同 12 条、重叠 2 条）"


def test_nothing_is_said_where_nothing_was_dropped() -> None:
    assert left_out({"tables": {}, "steps": [step("collect", general=(7, {}))]}) == []
