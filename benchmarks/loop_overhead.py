"""Overhead of the training loop per step, compared with a bare loop over the same network."""

from __future__ import annotations

from typing import ClassVar

from benchmarks.harness.benchmark import Benchmark, Setting
from benchmarks.harness.paced import Loop, pace
from benchmarks.harness.record import Goal, Measured
from benchmarks.harness.stages import Stages, tables
from benchmarks.harness.turns import median
from tasks.launchers.environment import training_environment

OURS, BARE = "cursus", "a bare loop"
ADDED = "added to a step"
STEPS, BATCH_TOKENS, LENGTH = 400_000, 512, 32
RECIPE = f"""\
name: overhead
paper: arXiv:1810.04805
stages:
  initial:
    kind: pretrain
    corpus: general
    tokenizer: {{name: wordpiece, vocab_size: 1024}}
    backbone: {{name: transformer, architecture: bert, positions: 64,
               dims: {{hidden_size: 32, num_hidden_layers: 2, num_attention_heads: 2, intermediate_size: 64}}}}
    corruption: {{name: token_mask, rate: 0.15}}
    head: masked_lm
    objective: masked_lm
    strategy: full
    limits: {{unknown: 1.0}}
    budget: {{tokens: 0, batch_tokens: {BATCH_TOKENS}, length: {LENGTH}}}
  train:
    kind: adapt_domain
    start: initial
    corpus: general
    budget: {{tokens: {STEPS * BATCH_TOKENS}, batch_tokens: {BATCH_TOKENS}, length: {LENGTH}}}
"""


class LoopOverhead(Benchmark):
    """With a small network, because the overhead does not depend on its size and is negligible in a step of a large
    one. The flow updates MLflow and the progress bar in another process, from the lines that a stage writes;
    `overheads` measures that.
    """

    name = "loop_overhead"
    what = (
        "Milliseconds that a stage's loop (Lightning, metrics, checkpoints to resume from at the default cadence) adds "
        "to a step, compared with a bare loop over the same batches, network, objective, optimizer and precision."
    )
    goals: ClassVar[tuple[Goal, ...]] = (Goal(figure=ADDED, at_most=0.6, unit="ms"),)

    def measure(self, setting: Setting) -> Measured:
        stages = Stages(setting, "overhead", RECIPE, tables(setting, labelled=True))
        stages.make("initial")
        ours, _ = stages.loop("train", 1)
        loops = {OURS: ours, BARE: Loop("benchmarks.peers.bare_loop", ours.argument, 1, training_environment())}
        rounds, seconds = (2, 1.0) if setting.quick else (11, 6.0)
        paces = pace(loops, stages.folder, rounds=rounds, seconds=seconds, warm=5 if setting.quick else 100, steps=50)
        by_variant = paces.turns
        if paces.failed:
            return Measured(figures=(), turns=by_variant, notes=tuple(paces.notes()))
        pairs = list(zip(by_variant[OURS], by_variant[BARE], strict=True))
        added = [1000 * (one.seconds / one.units - other.seconds / other.units) for one, other in pairs]
        processor = [1000 * (one.cpu / one.units - other.cpu / other.units) for one, other in pairs]
        figures = [median(ADDED, added, "ms"), median(f"{ADDED}, of processor time", processor, "ms")]
        figures += [
            median(f"a step of {name}", [1000 * one.seconds / one.units for one in taken], "ms")
            for name, taken in by_variant.items()
        ]
        return Measured(figures=tuple(figures), turns=by_variant)
