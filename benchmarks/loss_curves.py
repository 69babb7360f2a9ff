"""Whether what is faster also learns as well: losses at equal tokens beside transformers' Trainer."""

from __future__ import annotations

import statistics
from typing import ClassVar

from benchmarks.harness.benchmark import Benchmark, Setting, missing
from benchmarks.harness.paced import Loop, Paced
from benchmarks.harness.record import Figure, Goal, Measured
from benchmarks.harness.stages import Stages, losses, tables
from benchmarks.masked_lm import SIZES, STEP_TOKENS, recipe, trainer
from benchmarks.peers.trainer import LOG_EVERY, read_curve

LENGTH, SEEDS, STEPS = 128, (0, 1, 2), 240
SPREADS = "difference of the losses at the end, in standard deviations between seeds"


class LossCurves(Benchmark):
    """What differs between seeds is the order of the text, the masks and the dropped units, on either side. The Trainer's first
    step has the rate 0, and its blocks hold the marks of the texts they are made of; all else is the same.
    """

    name = "loss_curves"
    what = (
        "BERT-tiny's masked-LM loss at equal tokens, three seeds on either side from the same weights, dropout 0.1, the same "
        "optimizer and schedule: a stage as a launcher trains it, and transformers' Trainer as run_mlm.py uses it."
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
        for seed in seeds:
            ours, job = stages.loop(f"train@{seed}", STEP_TOKENS, log_every=LOG_EVERY)
            _walk(ours, stages, f"ours{seed}", steps)
            curves[f"cursus, seed {seed}"] = losses(job)
            folder = stages.folder / f"theirs{seed}"
            theirs = trainer(setting, folder, initial, text["general"], LENGTH, steps=steps, seed=seed)
            _walk(theirs, stages, f"theirs{seed}", steps)
            curves[f"HF Trainer, seed {seed}"] = tuple(read_curve(folder / "curve.jsonl", STEP_TOKENS))
        return Measured(figures=tuple(_figures(curves)), curves=curves)


def _walk(loop: Loop, stages: Stages, name: str, steps: int) -> None:
    """Let a loop train to its last step but one, at which it stands when that begins."""
    with Paced(loop, stages.folder / f"{name}.log") as process:
        process.ready()
        process.turn(0, steps - 1)


def _figures(curves: dict[str, tuple[tuple[int, float], ...]]) -> list[Figure]:
    """Of the mean loss over the last fifth of what both sides have logged, at least two lines, of each side and seed."""
    shared = min(curve[-1][0] for curve in curves.values())
    ends: dict[str, list[float]] = {"cursus": [], "HF Trainer": []}
    for name, curve in curves.items():
        told = [loss for tokens, loss in curve if tokens <= shared]
        ends[name.partition(",")[0]].append(statistics.mean(told[-max(2, len(told) // 5) :]))
    ours, theirs = ends["cursus"], ends["HF Trainer"]
    difference = statistics.mean(ours) - statistics.mean(theirs)
    spread = (statistics.pvariance(ours) / 2 + statistics.pvariance(theirs) / 2) ** 0.5 or 1e-9
    spread *= (len(ours) / (len(ours) - 1)) ** 0.5
    return [
        Figure(name=SPREADS, value=abs(difference) / spread, unit=""),
        Figure(name="loss at the end, cursus", value=statistics.mean(ours), unit="nats", low=min(ours), high=max(ours)),
        Figure(
            name="loss at the end, HF Trainer",
            value=statistics.mean(theirs),
            unit="nats",
            low=min(theirs),
            high=max(theirs),
        ),
        Figure(name="loss at the end, cursus less HF Trainer", value=difference, unit="nats"),
        Figure(name="tokens", value=shared, unit=""),
    ]
