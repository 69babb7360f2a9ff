"""Tables of a page as files."""

from __future__ import annotations

import csv
from pathlib import Path

from pipelines.reports.elements.table import Table, number, text, write_tables


def test_a_table_of_a_stage_of_another_recipe_has_its_files_in_the_same_folder(tmp_path: Path) -> None:
    rows = [{"label": "Future & past_work", "examples": 3}, {"label": "动机", "examples": 12}]
    table = Table("errors-regime/scratch", "Errors", (text("label", "Label"), number("examples", "Examples")), rows)
    written = write_tables("calibration", [table], tmp_path / "tables")
    assert sorted((tmp_path / "tables").iterdir()) == sorted(written)
    assert [path.name for path in written] == [
        "calibration-errors-regime.scratch.csv",
        "calibration-errors-regime.scratch.tex",
    ]
    with written[0].open(encoding="utf-8", newline="") as file:
        assert list(csv.reader(file)) == [["label", "examples"], ["Future & past_work", "3"], ["动机", "12"]]
    assert "Future \\& past\\_work & 3" in written[1].read_text(encoding="utf-8")
