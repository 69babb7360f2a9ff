"""Why claims were not reproduced: every such record is explained, and the page shows it beside the power."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pipelines.errors import RecipeError
from tasks.records.claims import RECORDS
from tasks.records.explanations import (
    FILE,
    POWER_ALONE,
    explanation_rows,
    read_explanations,
    smallest_shown,
    unexplained,
)
from tasks.records.measurements import named_records
from tests.steps import ROOT

VARIANCE = {"items": 0.0001, "item_freedom": 499, "seeds": 0.0, "seed_freedom": 1.0, "draws": 0.0, "draw_freedom": 1.0}
"""A standard error of a hundredth."""


def record(verdict: str, **more: Any) -> dict[str, Any]:
    return {"verdict": verdict, "effect": {"variance": VARIANCE}, **more}


def explained(folder: Path, text: str) -> dict[str, str]:
    (folder / FILE).write_text(text, encoding="utf-8")
    return read_explanations(folder)


def test_every_claim_that_was_not_reproduced_is_explained() -> None:
    records, explanations = named_records(ROOT / RECORDS), read_explanations(ROOT / RECORDS)
    assert unexplained(records, explanations) == [], f"add them to {RECORDS / FILE}"
    assert sorted(explanations.keys() - records.keys()) == [], "explanations without a record"
    reproduced = [name for name in explanations if records[name]["verdict"] == "reproduced"]
    assert reproduced == [], "explanations of claims that are reproduced by now"


def test_a_row_for_each_but_the_reproduced() -> None:
    records = {
        "a": record("reproduced"),
        "b": record("cannot tell at this scale"),
        "c": record("cannot tell at this scale"),
        "d": record("not reproduced"),
        "e": record("too near chance"),
    }
    explanations = {"c": "**budget**: too little text", "d": "**claim**: it does not hold"}
    rows = list(explanation_rows(records, {name: f"title {name}" for name in records}, explanations))
    assert [row[0] for row in rows] == ["title b", "title c", "title d", "title e"]
    assert [row[1] for row in rows] == [records[name]["verdict"] for name in "bcde"]
    assert [row[3] for row in rows] == [POWER_ALONE, explanations["c"], explanations["d"], ""]
    assert unexplained(records, explanations) == ["e"]


def test_the_smallest_effect_that_four_in_five_measurements_show() -> None:
    # a normal effect of (1.96 + 0.84) standard errors is beyond the interval with a power of 80 %
    assert smallest_shown(record("cannot tell at this scale")) == "2.8 points"
    of_three = {"contrasts": [{"variance": VARIANCE}] * 3, "share": True, "ratio": False, "exact": False}
    assert smallest_shown({"verdict": "not reproduced", **of_three}) == "3.2 points", "an interval for all three"
    assert smallest_shown({**of_three, "share": False}) == "0.0324"
    assert smallest_shown({**of_three, "ratio": True}) == "1.03 times"
    assert smallest_shown({**of_three, "exact": True}) == ""
    assert smallest_shown({"effect": {"difference": 0.1}}) == "", "records of before have no variances"


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ("- a\n", "must map names of records"),
        ("a: [\n", "is not YAML"),
        ("a: power\n", "a: must have the keys because and measured"),
        ("a: {because: power}\n", "a: must have the keys because and measured"),
        ("a: {because: luck, measured: x}\n", "a.because: 'luck' is none of: power, budget, flaw, claim"),
        ("a: {because: power, measured: ' '}\n", "a.measured: must say what was measured"),
    ],
)
def test_a_mistake_in_the_file_names_its_key(tmp_path: Path, text: str, refused: str) -> None:
    with pytest.raises(RecipeError) as error:
        explained(tmp_path, text)
    assert refused in str(error.value) and FILE in str(error.value)


def test_explanations_are_one_sentence_with_its_cause(tmp_path: Path) -> None:
    assert read_explanations(tmp_path) == {}
    text = "a.b.data:\n  because: budget\n  measured: >-\n    after 3 M tokens\n    neither has learnt\n"
    assert explained(tmp_path, text) == {"a.b.data": "**budget**: after 3 M tokens neither has learnt"}
