"""Scaling of training speed with network, sequence length, batch and processors; and of fine-tuning time with
labels."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from benchmarks.checkouts import ROOT, users_shell
from benchmarks.fine_tuning import sentences
from benchmarks.harness.benchmark import Benchmark, Setting
from benchmarks.harness.growth import exponent, point
from benchmarks.harness.miniatures import STEP_TOKENS, initial
from benchmarks.harness.paced import Loop, pace
from benchmarks.harness.record import Measured, Plot, Point, Series, Turn
from benchmarks.harness.stages import Stages, tables
from benchmarks.harness.turns import Turns, median, rate, ratio, take_turns, timed

STEPS = 20_000
"""Length of the schedule; no run gets that far."""
USUAL_LENGTH, USUAL_BATCH = 128, STEP_TOKENS
SHAPES = {"tiny": (2, 128), "mini": (4, 256), "small": (4, 512), "medium": (8, 512), "base": (12, 768)}
"""BERT's sizes (Turc et al. 2019): layers and hidden size."""
USUAL_SHAPE = "mini"
LENGTHS = (32, 64, 128, 256, 512)
BATCHES = (1024, 2048, 4096, 8192, 16384)
LABELLED = (30, 100, 300, 1000, 3000)
EPOCHS = 3
TOKENS = "tokens/s"
TRAINED = """\
  {stage}: {{kind: adapt_domain, start: initial, corpus: general,
    budget: {{tokens: {tokens}, batch_tokens: {batch}, length: {length}}}}}
"""
LABELS = """\
  {stage}:
    kind: finetune
    start: initial
    corpus: task
    head: sequence_classification
    corruption: []
    objective: cross_entropy
    strategy: full
    optimizer: {{lr: 5.0e-5, weight_decay: 0.01}}
    budget: {{epochs: {epochs}, batch_texts: 32, length: 128, labelled: {labelled}}}
"""


class Scaling(Benchmark):
    """Every rate is that of a masked-LM stage as a launcher trains it; the variants of a plot take turns. The time of a
    fine-tuning is measured from the start of its process to its end, which is what a user waits for."""

    name = "scaling"
    what = (
        "Tokens per second of masked-LM pre-training by size of the network, sequence length, tokens per batch, and "
        "processors as threads of one rank or as ranks; seconds of a whole fine-tuning by number of labelled examples. "
        f"Unless stated otherwise: BERT-{USUAL_SHAPE}, {USUAL_LENGTH} tokens per sequence, {USUAL_BATCH:,} per step, "
        "dropout 0.1, bfloat16 where the processor supports it. An exponent b means that y grows as xᵇ, with its 95 % "
        "interval over the points."
    )
    slow = True

    def measure(self, setting: Setting) -> Measured:
        text = tables(setting)
        parts = [sizes(setting, text), lengths_and_batches(setting, text), ranks(setting, text), labels(setting)]
        return Measured(
            figures=tuple(figure for part in parts for figure in part.figures),
            turns={name: taken for part in parts for name, taken in part.turns.items()},
            plots=tuple(plot for part in parts for plot in part.plots),
            notes=tuple(note for part in parts for note in part.notes),
        )


def sizes(setting: Setting, text: Mapping[str, Path]) -> Measured:
    """Tokens per second by number of weights of the backbone."""
    chosen = dict(list(SHAPES.items())[: 2 if setting.quick else None])
    loops: dict[str, Loop] = {}
    for name in chosen:
        stages = made(setting, f"size_{name}", name, text, {"train": (USUAL_LENGTH, USUAL_BATCH)})
        loops[name] = stages.loop("train", USUAL_BATCH)[0]
    turns, notes = taken(setting, loops, "size")
    counted = {name: weights(*chosen[name]) for name in turns}
    return grown("size", "Tokens a second by size of the network", "weights of the body", counted, turns, notes)


def lengths_and_batches(setting: Setting, text: Mapping[str, Path]) -> Measured:
    """Tokens per second by sequence length, and by tokens per batch."""
    lengths, batches = (all_of[: 2 if setting.quick else None] for all_of in (LENGTHS, BATCHES))
    cases = {f"length {length}": (length, USUAL_BATCH) for length in lengths}
    cases |= {f"batch {batch}": (USUAL_LENGTH, batch) for batch in batches}
    stages = made(setting, "shapes", USUAL_SHAPE, text, {name.replace(" ", "_"): case for name, case in cases.items()})
    loops = {name: stages.loop(name.replace(" ", "_"), batch)[0] for name, (_, batch) in cases.items()}
    by_length, first = taken(setting, {f"length {one}": loops[f"length {one}"] for one in lengths}, "lengths")
    by_batch, second = taken(setting, {f"batch {one}": loops[f"batch {one}"] for one in batches}, "batches")
    parts = [
        grown("length", "Tokens a second by length of a sequence", "tokens of a sequence",
              {name: float(cases[name][0]) for name in by_length}, by_length, first),
        grown("batch", "Tokens a second by size of a batch", "tokens of a batch",
              {name: float(cases[name][1]) for name in by_batch}, by_batch, second),
    ]  # fmt: skip
    return Measured(
        figures=tuple(figure for part in parts for figure in part.figures),
        turns=by_length | by_batch,
        plots=tuple(plot for part in parts for plot in part.plots),
        notes=(*first, *second),
    )


def ranks(setting: Setting, text: Mapping[str, Path]) -> Measured:
    """Two processors as two threads of one rank, or as two ranks that average their gradients (DDP over gloo)."""
    alone, threads, together = "one rank, one thread", "one rank, two threads", "two ranks, one thread each"
    if setting.threads < 2:
        return Measured(figures=(), notes=("ranks: two threads are needed",))
    stages = made(setting, "ranks", USUAL_SHAPE, text, {"train": (USUAL_LENGTH, USUAL_BATCH)})
    runtimes = {alone: {"threads": 1}, threads: {"threads": 2}, together: {"threads": 1, "devices": 2}}
    loops = {name: stages.loop("train", USUAL_BATCH, **runtime)[0] for name, runtime in runtimes.items()}
    turns, notes = taken(setting, loops, "ranks")
    figures = [rate(name, variant_turns, TOKENS) for name, variant_turns in turns.items()]
    if alone in turns:
        # the processor time of a turn is only that of the first rank
        gains = [ratio(f"{name}: against {alone}", turns[name], turns[alone], alone) for name in turns if name != alone]
        figures += [gain.model_copy(update={"cpu": None}) for gain in gains]
    first = [point(1, turns[alone])] if alone in turns else []
    series = tuple(
        Series(name=name, points=(*first, point(2, turns[one])))
        for name, one in (("threads", threads), ("ranks", together))
        if one in turns
    )
    plot = Plot(name="ranks", title="Tokens a second by processors", x="processors", y=TOKENS, series=series)
    return Measured(figures=tuple(figures), turns=turns, plots=(plot,) if series else (), notes=tuple(notes))


def labels(setting: Setting) -> Measured:
    """Seconds of a fine-tuning by its number of labelled examples."""
    text = sentences(setting.folder("labelled"))
    chosen = LABELLED[: 2 if setting.quick else None]
    stages = made(setting, "labels", USUAL_SHAPE, text, {}, {f"labelled_{one}": one for one in chosen})
    ways = {f"{one} labelled": partial(fine_tuned, stages, f"labelled_{one}") for one in chosen}
    turns = take_turns(ways, 1 if setting.quick else 3)
    figures = [median(name, [turn.seconds for turn in variant_turns], "s") for name, variant_turns in turns.items()]
    points = [
        Point(x=number, y=figure.value, low=figure.low, high=figure.high)
        for number, figure in zip(chosen, figures, strict=True)
    ]
    fit = exponent("seconds by labelled examples: exponent", points)
    plot = Plot(
        name="labels", title=f"A fine-tuning of {EPOCHS} epochs by labelled examples", x="labelled examples",
        y="seconds, the start of its process included", series=(Series(name="fine-tuning", points=tuple(points)),),
    )  # fmt: skip
    return Measured(figures=(*figures, *([fit] if fit else [])), turns=turns, plots=(plot,))


def fine_tuned(stages: Stages, stage: str) -> Turn:
    """One whole fine-tuning, in a process like a launcher's."""
    loop, job = stages.loop(stage, 1)
    environment = {**users_shell(), **loop.environment, "PYTHONPATH": str(ROOT)}

    def work() -> float:
        command = [sys.executable, "-m", "pipelines.training.ranks.rank", str(loop.argument)]
        with (job.out / "output.txt").open("w") as log:
            subprocess.run(command, cwd=ROOT, env=environment, stdout=log, stderr=log, check=True)
        return 1

    return timed(work)


def made(
    setting: Setting,
    name: str,
    size: str,
    text: Mapping[str, Path],
    trained: Mapping[str, tuple[int, int]],
    labelled: Mapping[str, int] | None = None,
) -> Stages:
    """Stages that start from random weights of one size: on plain text by (length, batch tokens), on labels by their
    number."""
    recipe = initial(name, *SHAPES[size], quick=setting.quick)
    for stage, (length, batch) in trained.items():
        recipe += TRAINED.format(stage=stage, tokens=STEPS * batch, batch=batch, length=length)
    for stage, number in (labelled or {}).items():
        recipe += LABELS.format(stage=stage, epochs=EPOCHS, labelled=number)
    stages = Stages(setting, name, recipe, text)
    stages.make("initial")
    return stages


def taken(setting: Setting, loops: Mapping[str, Loop], folder: str) -> tuple[Turns, list[str]]:
    """The turns of the stages, and notes on those that failed."""
    quick = setting.quick
    paces = pace(
        loops, setting.folder(f"{folder}-logs"), rounds=2 if quick else 5, seconds=0.5 if quick else 3, warm=2, steps=2
    )
    return paces.turns, paces.notes(f"{folder}: ")


def grown(name: str, title: str, counts: str, at: Mapping[str, float], turns: Turns, notes: list[str]) -> Measured:
    """Figures and plot of a rate at several values of x."""
    points = [point(at[one], variant_turns) for one, variant_turns in turns.items()]
    fit = exponent(f"{TOKENS} by {counts}: exponent", points)
    plot = Plot(name=name, title=title, x=counts, y=TOKENS, series=(Series(name="cursus", points=tuple(points)),))
    figures = [rate(one, variant_turns, TOKENS) for one, variant_turns in turns.items()]
    return Measured(
        figures=(*figures, *([fit] if fit else [])),
        turns=turns,
        plots=(plot,) if points else (),
        notes=tuple(notes),
    )


def weights(layers: int, hidden: int) -> float:
    """Number of weights in the matrices of a backbone whose inner size is four times its hidden size."""
    return 12.0 * layers * hidden**2
