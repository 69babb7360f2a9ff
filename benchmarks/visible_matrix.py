"""Cost of an attention pattern: a stage whose rows have a visible matrix each, compared with dense attention."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from benchmarks.harness.benchmark import Benchmark, Setting
from benchmarks.harness.cases import against, measured
from benchmarks.harness.miniatures import STEP_TOKENS
from benchmarks.harness.paced import Paces, pace
from benchmarks.harness.record import Goal, Measured
from benchmarks.harness.stages import Stages, tables
from benchmarks.masked_lm import SIZES, recipe

MATRIX, DENSE = "a visible matrix", "dense attention"
LENGTH = 128
PATTERN = "  matrix: {like: train, attention: within_documents}\n"
"""A pattern whose matrix differs from row to row, over the same rows."""


def compared(size: str) -> str:
    """The figure that compares both for a network of `size`."""
    return f"{size}: with a visible matrix"


class VisibleMatrixCost(Benchmark):
    """Both stages read the same rows from the same weights. What a pattern adds is the matrix of every batch, its way
    to the network, and a mask that differs from query to query: the scores that it hides are computed as well."""

    name = "visible_matrix"
    what = (
        "Tokens per second of masked-LM pre-training, BERT-tiny, -mini and -small, 4,096 tokens per step in rows of "
        f"{LENGTH}, dropout 0.1, bfloat16: a stage with an attention pattern, compared with the same without."
    )
    goals: ClassVar[tuple[Goal, ...]] = tuple(Goal(figure=compared(name), at_least=0.97) for name in SIZES)

    def measure(self, setting: Setting) -> Measured:
        return measured(self._cases(setting), against(MATRIX, DENSE, compared))

    def _cases(self, setting: Setting) -> Iterator[tuple[str, Paces]]:
        text = tables(setting)
        for name, size in list(SIZES.items())[: 1 if setting.quick else None]:
            stages = Stages(setting, name, recipe(size, name, LENGTH, setting.quick) + PATTERN, text)
            stages.make("initial")
            loops = {one: stages.loop(stage, STEP_TOKENS)[0] for one, stage in ((MATRIX, "matrix"), (DENSE, "train"))}
            rounds, seconds = (2, 1.0) if setting.quick else (9, 4.0)
            yield name, pace(loops, stages.folder, rounds=rounds, seconds=seconds, steps=2)
