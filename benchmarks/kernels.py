"""Speed-up by the CPU kernels: the same stages with and without a C compiler."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from benchmarks.harness.benchmark import Benchmark, Setting
from benchmarks.harness.cases import against, measured
from benchmarks.harness.miniatures import STEP_TOKENS
from benchmarks.harness.paced import Paces, pace
from benchmarks.harness.record import Measured
from benchmarks.harness.stages import Stages, tables
from benchmarks.masked_lm import SIZES, recipe

WITH, WITHOUT = "with a compiler", "without"
LENGTH = 128


class Kernels(Benchmark):
    """Without a compiler, a stage trains with torch's own kernels; everything else is the same, including the
    environment."""

    name = "kernels"
    what = (
        "Tokens per second of masked-LM pre-training, BERT-tiny, -mini and -small, 4,096 tokens per step in rows of "
        f"{LENGTH}, dropout 0.1, bfloat16: a stage as a launcher trains it, with and without a C compiler on the PATH."
    )

    def measure(self, setting: Setting) -> Measured:
        return measured(self._cases(setting), against(WITH, WITHOUT, lambda name: f"{name}: {WITH}"))

    def _cases(self, setting: Setting) -> Iterator[tuple[str, Paces]]:
        text = tables(setting)
        nowhere = {"PATH": str(setting.folder("no-programs"))}
        for name, size in list(SIZES.items())[: 1 if setting.quick else None]:
            stages = Stages(setting, name, recipe(size, name, LENGTH, setting.quick), text)
            stages.make("initial")
            (ours, _), (plain, _) = (stages.loop("train", STEP_TOKENS) for _ in range(2))
            loops = {WITH: ours, WITHOUT: replace(plain, environment={**plain.environment, **nowhere})}
            rounds, seconds = (2, 1.0) if setting.quick else (5, 4.0)
            yield name, pace(loops, stages.folder, rounds=rounds, seconds=seconds, steps=2)
