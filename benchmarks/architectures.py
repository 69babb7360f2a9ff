"""Training speed of every architecture and every backbone that trains by gradients, compared with plain loops."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, ClassVar

import numpy as np

from benchmarks.harness.benchmark import Benchmark, Setting
from benchmarks.harness.cases import measured
from benchmarks.harness.kept_cases import kept
from benchmarks.harness.paced import Loop, Paces, pace
from benchmarks.harness.record import Figure, Goal, Measured
from benchmarks.harness.stages import Stages, tables
from benchmarks.harness.turns import ratio
from benchmarks.trained_networks import ROWS, TrainedNetwork
from pipelines.models.opening import open_tokenizer
from pipelines.recipe.job import Job
from pipelines.vocabulary import Field
from tasks.launchers.environment import training_environment

OURS, PLAIN, COMPILED = "cursus", "a plain loop", "a plain loop, compiled"
STEP_TOKENS, LENGTH, STEPS = 4096, 128, 4000
KEPT_STEPS, QUICK_STEPS = 64, 4
"""Steps whose rows a plain loop over transformers' own network reads again and again."""
QUICK = ("bert", "openai-gpt", "lstm")
"""Rows of a quick run: masked, from left to right, and of no network of transformers."""
RECIPE = """\
name: {name}
paper: arXiv:1706.03762
stages:
  initial:
    kind: pretrain
    corpus: general
    tokenizer: {{name: {tokenizer}, vocab_size: {vocabulary}}}
    layout: {{name: windows, framed: {framed}}}
    backbone: {backbone}
    corruption: [{corruption}]
    head: {head}
    objective: {objective}
    strategy: full
    optimizer: {{lr: 5.0e-4, weight_decay: 0.01}}
    limits: {{unknown: 1.0}}
    budget: {{tokens: 0, batch_tokens: {step_tokens}, length: {length}}}
  train:
    kind: adapt_domain
    start: initial
    corpus: general
    budget: {{tokens: {tokens}, batch_tokens: {step_tokens}, length: {length}}}
"""


def title(name: str) -> str:
    """The name of a row's ratio."""
    return f"{name}: against the faster plain loop"


class Architectures(Benchmark):
    """All variants start from the same weights and have the environment that a launcher sets, the same threads, fused
    AdamW, clipping and precision. Where transformers has the network, or can open ours, the plain loop calls it with
    labels on rows that were corrupted before the measurement, and once more compiled (`torch.compile`): the faster of
    the two counts. Elsewhere it is our network, batches and objective in a bare loop on torch's own kernels."""

    name = "architectures"
    what = (
        "Tokens per second of pre-training every architecture and every backbone that trains by gradients, four layers "
        "of 256 where it has layers, rows of 128 tokens, 4,096 tokens per step, each one's default dropout, in the "
        "precision that suits the processor: a stage as a launcher trains it, compared with a plain loop over "
        "transformers' own network of the same size, or over ours where transformers has none."
    )
    slow = True
    goals: ClassVar[tuple[Goal, ...]] = tuple(Goal(figure=title(name), at_least=1) for name in ROWS)

    def measure(self, setting: Setting) -> Measured:
        return measured(self._cases(setting), compared)

    def _cases(self, setting: Setting) -> Iterator[tuple[str, Paces]]:
        text = tables(setting)
        for name, row in ROWS.items():
            if not setting.quick or name in QUICK:
                yield name, kept(setting, name, partial(_paced, setting, name, row, text))


def _paced(setting: Setting, name: str, row: TrainedNetwork, text: dict[str, Path]) -> Paces:
    return paced(planned(setting, name, row, text), row)


def labels_of(batch: dict[Field, Any]) -> Any:
    """int64 [B, L], or [B, T] of target sequences: what transformers' networks call labels, −100 where no token is
    predicted; the tokens themselves for a network that predicts the next one."""
    if Field.TARGET_IDS in batch:
        return batch[Field.TARGET_IDS]
    if Field.MASKED_POSITIONS not in batch:
        return batch[Field.INPUT_IDS]
    labels = np.full_like(batch[Field.INPUT_IDS], -100)
    labels.ravel()[batch[Field.MASKED_POSITIONS]] = batch[Field.MASKED_LABELS]
    return labels


def planned(setting: Setting, name: str, row: TrainedNetwork, text: dict[str, Path]) -> Stages:
    """The stages of the row `name`, before any of them is made."""
    recipe = RECIPE.format(
        name=name, tokenizer=row.tokenizer, vocabulary=2048 if setting.quick else row.vocabulary,
        framed=str(row.framed).lower(), backbone=row.backbone, corruption=row.corruption, head=row.head,
        objective=row.objective, step_tokens=STEP_TOKENS, length=LENGTH, tokens=STEPS * STEP_TOKENS,
    )  # fmt: skip
    return Stages(setting, name, recipe, text)


def write_rows(job: Job, initial: Path, steps: int, into: Path) -> Path:
    """Write what transformers' networks are called with in the first `steps` steps of `job`: an array for each argument
    and step."""
    from pipelines.training.loop.inputs import batches_of

    (batches,) = batches_of(job, {"": None}, open_tokenizer(initial)).lines
    arrays: dict[str, Any] = {}
    for step in range(steps):
        batch = batches.batch(step)  # type: ignore[union-attr]  # a line of plain text
        arrays[f"input_ids {step}"] = batch[Field.INPUT_IDS]
        arrays[f"labels {step}"] = labels_of(batch)
        if Field.ATTENTION_MASK in batch:
            arrays[f"attention_mask {step}"] = batch[Field.ATTENTION_MASK]
    np.savez(into, **arrays)
    return into


def paced(stages: Stages, row: TrainedNetwork) -> Paces:
    """The turns of a stage and of its plain loops."""
    setting = stages.setting
    initial = stages.make("initial")
    ours, job = stages.loop("train", STEP_TOKENS)
    loops = {OURS: ours}
    if row.network is None:
        loops[PLAIN] = Loop("benchmarks.peers.torch_loop", ours.argument, STEP_TOKENS, training_environment())
    else:
        steps = QUICK_STEPS if setting.quick else KEPT_STEPS
        rows = write_rows(job, initial, steps, stages.folder / "rows.npz")
        chosen = job.stage.optimizer
        settings = {
            "model": str(initial), "rows": str(rows), "network": row.network, "threads": setting.threads,
            "bfloat16": chosen.precision == "bf16-mixed", "lr": chosen.lr, "weight_decay": chosen.weight_decay,
            "clip": chosen.clip,
        }  # fmt: skip
        for variant, compiled in ((PLAIN, False), *(() if setting.quick else ((COMPILED, True),))):
            order = stages.folder / f"{variant}.json"
            order.write_text(json.dumps({**settings, "compiled": compiled}), encoding="utf-8")
            loops[variant] = Loop("benchmarks.peers.plain_loop", order, STEP_TOKENS, training_environment())
    if setting.quick:
        return pace(loops, stages.folder, rounds=2, seconds=1, warm=1)
    return pace(loops, stages.folder, rounds=5, seconds=5, steps=2)


def compared(name: str, paces: Paces) -> list[Figure]:
    """The ratio of a row to the faster of its plain loops; none where ours failed, or all of them."""
    speeds = {
        variant: median(turn.units / turn.seconds for turn in paces.turns[variant])
        for variant in (PLAIN, COMPILED)
        if variant in paces.turns
    }
    if OURS not in paces.turns or not speeds:
        return []
    faster = max(speeds, key=lambda variant: speeds[variant])
    return [ratio(title(name), paces.turns[OURS], paces.turns[faster], faster)]
