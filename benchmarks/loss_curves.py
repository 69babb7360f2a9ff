"""Losses at equal numbers of tokens, compared with transformers' Trainer: the faster loop must learn as well."""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import ClassVar

from benchmarks.harness.benchmark import Benchmark, Setting, missing
from benchmarks.harness.miniatures import RATE, STEP_TOKENS
from benchmarks.harness.paced import Loop, Paced
from benchmarks.harness.record import Figure, Goal, Measured
from benchmarks.harness.stages import Stages, losses, tables
from benchmarks.masked_lm import SIZES, recipe, trainer
from benchmarks.peers.trainer import LOG_EVERY, read_curve
from pipelines.models.opening import open_tokenizer
from pipelines.recipe.job import Job
from pipelines.training.batches.plain_text import PlainBatches
from pipelines.training.loop.inputs import batches_of
from pipelines.vocabulary import Field

LENGTH, SEEDS, STEPS = 128, (0, 1, 2), 240
SPREADS = "difference of the held-out losses, in standard deviations between seeds"
OURS, TRAINER = "cursus", "HF Trainer"
ROWS = 32
"""Held-out texts per batch."""


class LossCurves(Benchmark):
    """Both models are evaluated on the same masks in the same held-out texts, without dropout, in float32. The curves
    are the training losses, each with its own masks.

    The benchmark compares loops, not rows: the Trainer reads the rows of our stage (its own blocks hold more
    separators, and repeat in every epoch) with our learning rate of every step (its own first one is 0). Order, masks
    and dropout are each side's own, and differ between seeds.
    """

    name = "loss_curves"
    what = (
        "BERT-tiny's masked-LM loss on held-out texts after training on the same rows, three seeds per side from the "
        "same weights, dropout 0.1, the same optimizer and learning rates: a stage as a launcher trains it, and "
        "transformers' Trainer with the collator of run_mlm.py."
    )
    slow = True
    goals: ClassVar[tuple[Goal, ...]] = (Goal(figure=SPREADS, at_most=2, unit=""),)

    def unavailable(self) -> str | None:
        return missing("accelerate", "datasets")

    def measure(self, setting: Setting) -> Measured:
        text = tables(setting)
        steps, seeds = (12, SEEDS[:2]) if setting.quick else (STEPS, SEEDS)
        several = f"    seeds: [{', '.join(map(str, seeds))}]\n"
        stages = Stages(
            setting, "curves", recipe(SIZES["tiny"], "curves", LENGTH, setting.quick, steps) + several, text
        )
        initial = stages.make("initial")
        curves: dict[str, tuple[tuple[int, float], ...]] = {}
        ends: dict[str, list[float]] = {OURS: [], TRAINER: []}
        for seed in seeds:
            ours, job = stages.loop(f"train@{seed}", STEP_TOKENS, log_every=LOG_EVERY)
            _train(ours, stages, f"ours{seed}")
            curves[f"{OURS}, seed {seed}"] = losses(job)
            ends[OURS].append(held_out_loss(job.out, text["domain"]))
            folder = stages.folder / f"theirs{seed}"
            left = folder / "model"
            rates = [job.stage.schedule.factor(step, steps) for step in range(steps)]
            settings = {
                "task": "masked_rows",
                "rows": _rows(job, stages.folder / f"rows{seed}.json"),
                "rates": rates,
                "leave": str(left),
            }
            baseline = trainer(setting, folder, initial, text["general"], LENGTH, steps=steps, seed=seed, **settings)
            _train(baseline, stages, f"theirs{seed}")
            curves[f"{TRAINER}, seed {seed}"] = tuple(read_curve(folder / "curve.jsonl", STEP_TOKENS))
            ends[TRAINER].append(held_out_loss(left, text["domain"]))
        figures = _figures(ends[OURS], ends[TRAINER], held_out_loss(initial, text["domain"]), steps * STEP_TOKENS)
        return Measured(figures=tuple(figures), curves=curves)


def _train(loop: Loop, stages: Stages, name: str) -> None:
    with Paced(loop, stages.folder / f"{name}.log") as process:
        process.ready()
        process.finish()


def _rows(job: Job, into: Path) -> str:
    """Write the rows that a job reads, before masking; returns the file."""
    assert job.start is not None
    (batches,) = batches_of(job, {"": None}, open_tokenizer(job.start)).lines
    assert isinstance(batches, PlainBatches)
    read = [row for step in range(len(batches)) for row in batches[step][Field.ORIGINAL_IDS].tolist()]
    into.write_text(json.dumps(read), encoding="utf-8")
    return str(into)


def held_out_loss(model: Path, table: Path) -> float:
    """Mean loss, in nats, of the model in a folder over masked tokens of the texts in a table; the masks are the same
    for every model with the same tokenizer."""
    import pyarrow.parquet as parquet
    import torch
    from transformers import AutoModelForMaskedLM, AutoTokenizer, DataCollatorForLanguageModeling

    tokenizer = AutoTokenizer.from_pretrained(model, trust_remote_code=False)
    network = AutoModelForMaskedLM.from_pretrained(model, trust_remote_code=False).eval()
    texts = parquet.read_table(table, columns=["text"])["text"].to_pylist()
    rows = [tokenizer(text, truncation=True, max_length=LENGTH, return_special_tokens_mask=True) for text in texts]
    collator = DataCollatorForLanguageModeling(tokenizer, mlm_probability=RATE, seed=0)
    total, count = 0.0, 0
    with torch.inference_mode():
        for at in range(0, len(rows), ROWS):
            batch = collator(rows[at : at + ROWS])
            predicted = int((batch["labels"] >= 0).sum())
            total += float(network(**batch).loss) * predicted
            count += predicted
    return total / count


def _figures(ours: list[float], baseline: list[float], before: float, tokens: int) -> list[Figure]:
    difference = statistics.mean(ours) - statistics.mean(baseline)
    spread = (statistics.pvariance(ours) / 2 + statistics.pvariance(baseline) / 2) ** 0.5 or 1e-9
    spread *= (len(ours) / (len(ours) - 1)) ** 0.5
    return [
        Figure(name=SPREADS, value=abs(difference) / spread, unit=""),
        *(
            Figure(
                name=f"held-out loss, {name}", value=statistics.mean(ends), unit="nats", low=min(ends), high=max(ends)
            )
            for name, ends in ((OURS, ours), (TRAINER, baseline))
        ),
        Figure(name=f"held-out loss, {OURS} less {TRAINER}", value=difference, unit="nats"),
        Figure(name="held-out loss before the first step", value=before, unit="nats"),
        Figure(name="tokens", value=tokens, unit=""),
    ]
