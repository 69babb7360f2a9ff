"""What the registry says of a version: only the scores that people filter by, and where it comes from."""

from __future__ import annotations

from pipelines.reports.score_tables import ScoreRow, ScoreTable
from tasks.stages.offer import offer_of
from tests.tasks.conftest import TEXTS, Builder

METRICS = ("accuracy", "macro_f1", "mcc", "log_loss")


def table(task: str | None, accuracy: float) -> ScoreTable:
    def row(name: str, value: float, baseline: bool = False) -> ScoreRow:
        scores = {metric: {"mean": value, "low": value - 0.02, "high": value + 0.02} for metric in METRICS}
        return ScoreRow(name, scores, baseline)

    rows = (row("majority | class", 0.3, True), row("classify", 0.7), row("int8", accuracy))
    return ScoreTable("report", "classification", False, METRICS, rows, {}, task)


def test_a_version_is_described_by_its_data_recipe_scores_and_what_it_was_compressed_from(builder: Builder) -> None:
    data = {"train": builder.table("train", TEXTS)}
    teacher = builder.step("classify", "finetune", data=data)
    student = builder.step("small", "compress", data=data)
    parents = {"start": student.fingerprint, "teacher": teacher.fingerprint}
    final = builder.step("int8", "compress", parents=parents, data=data).provenance
    records = {"start": student.provenance, "teacher": teacher.provenance}
    offer = offer_of(final, "docs", records, [table(None, 0.65), table("rte", 0.5)])
    assert offer.scores == {
        "accuracy": 0.65, "macro_f1": 0.65, "mcc": 0.65, "rte/accuracy": 0.5, "rte/macro_f1": 0.5, "rte/mcc": 0.5,
    }  # fmt: skip
    said = offer.description
    assert said.startswith("int8 of the recipe regime (seed 0) on the dataset docs, from the commit 0123abc.")
    assert f"Compressed from small {student.fingerprint[:8]}, taught by classify {teacher.fingerprint[:8]}." in said
    assert "0.650 [0.630, 0.670]" in said and "| rte: test scores |" in said
    assert "majority | class" not in said, "a name cannot end a cell"
