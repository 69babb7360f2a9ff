"""Cost of lines: one stage of two lines, compared with the same two stages apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from benchmarks.fine_tuning import sentences
from benchmarks.harness.benchmark import Benchmark, Setting
from benchmarks.harness.miniatures import STEP_TOKENS, initial
from benchmarks.harness.paced import pace
from benchmarks.harness.record import Figure, Goal, Measured, Turn
from benchmarks.harness.stages import Stages, tables
from benchmarks.harness.turns import Turns, median, ratio
from benchmarks.masked_lm import SIZES

LINES, FIRST, SECOND, SEPARATE = "two lines", "the first alone", "the second alone", "the same two stages apart"
VARIANTS = {LINES: "pair", FIRST: "first", SECOND: "second"}
"""Variant → its stage."""
LENGTH = 128
STEPS = {"tiny": 24, "small": 4}
"""Steps in a turn, by network: even, so that both lines take as many; about two seconds."""
ROUNDS = 11
LONG = 4000
"""Steps of a stage; no run gets that far."""
CORPORA = f"""\
  pair:
    kind: adapt_domain
    start: initial
    mixing: alternating
    lines: {{first: {{corpus: general}}, second: {{corpus: domain}}}}
    budget: {{tokens: {LONG * STEP_TOKENS}, batch_tokens: {STEP_TOKENS}, length: {LENGTH}}}
  first: {{kind: adapt_domain, start: initial, corpus: general,
          budget: {{tokens: {LONG * STEP_TOKENS}, batch_tokens: {STEP_TOKENS}, length: {LENGTH}}}}}
  second: {{like: first, corpus: domain}}
"""
TASKS = f"""\
  pair:
    kind: finetune
    start: initial
    mixing: alternating
    strategy: full
    optimizer: {{lr: 5.0e-5, weight_decay: 0.01}}
    lines:
      first: {{corpus: task, head: sequence_classification, objective: cross_entropy}}
      second: {{corpus: task, head: {{name: sequence_classification, pooling: cls}}, objective: cross_entropy}}
    budget: {{epochs: 1000, batch_texts: 128, length: {LENGTH}}}
  first:
    kind: finetune
    start: initial
    strategy: full
    optimizer: {{lr: 5.0e-5, weight_decay: 0.01}}
    corpus: task
    head: sequence_classification
    objective: cross_entropy
    budget: {{epochs: 1000, batch_texts: 128, length: {LENGTH}}}
  second: {{like: first, head: {{name: sequence_classification, pooling: cls}}}}
"""


@dataclass(frozen=True)
class Case:
    """Two lines over one backbone."""

    name: str
    stages: str
    """Recipe text of the stages `pair`, `first` and `second`."""
    tables: Callable[[Setting], dict[str, Path]]


def labelled(setting: Setting) -> dict[str, Path]:
    """Tables of labelled sentences."""
    return sentences(setting.folder("sentences"), most=600 if setting.quick else None)


CASES = (Case("two corpora, one head", CORPORA, tables), Case("two tasks, two heads", TASKS, labelled))


def compared(case: Case, size: str) -> str:
    """The figure that compares both for a network of `size`."""
    return f"{case.name}, {size}: {LINES}"


class LinesCost(Benchmark):
    """All stages start from the same weights. A turn of the pair has as many steps of each line as the turns of the two
    stages apart have together, so that a ratio of 1 says that lines are free."""

    name = "lines"
    what = (
        "Steps per second of a stage with two lines that alternate, compared with the same two stages apart, BERT-tiny "
        f"and -small, dropout 0.1, bfloat16: masked LM on two corpora with one head, 4,096 tokens per step in rows of "
        f"{LENGTH}; and classification of sentences with two heads, 128 sentences per step."
    )
    goals: ClassVar[tuple[Goal, ...]] = tuple(
        Goal(figure=compared(case, size), at_least=0.97) for case in CASES for size in STEPS
    )

    def measure(self, setting: Setting) -> Measured:
        figures: list[Figure] = []
        turns: Turns = {}
        notes: list[str] = []
        for case in CASES:
            written = case.tables(setting)
            for size, steps in list(STEPS.items())[: 1 if setting.quick else None]:
                name, stages = f"{case.name}, {size}", planned(setting, case, size, written)
                stages.make("initial")
                loops = {variant: stages.loop(stage, 1)[0] for variant, stage in VARIANTS.items()}
                rounds, steps = (2, 2) if setting.quick else (ROUNDS, steps)
                paces = pace(loops, stages.folder, rounds=rounds, seconds=0, warm=4, steps=steps)
                turns |= {f"{name}: {variant}": taken for variant, taken in paces.turns.items()}
                notes += paces.notes(f"{name}: ")
                if not paces.failed:
                    separate = together(paces.turns[FIRST], paces.turns[SECOND])
                    figures += [
                        ratio(compared(case, size), paces.turns[LINES], separate, SEPARATE),
                        milliseconds(f"{name}: a step of {LINES}", paces.turns[LINES]),
                        milliseconds(f"{name}: a step apart", separate),
                    ]
        return Measured(figures=tuple(figures), turns=turns, notes=tuple(notes))


def planned(setting: Setting, case: Case, size: str, written: dict[str, Path]) -> Stages:
    """The stages of a case for a network of `size`."""
    network = SIZES[size]
    begins = initial("lines", network.layers, network.hidden, quick=setting.quick, length=LENGTH)
    return Stages(setting, f"{case.name} {size}".replace(",", "").replace(" ", "_"), begins + case.stages, written)


def together(first: Sequence[Turn], second: Sequence[Turn]) -> tuple[Turn, ...]:
    """The turns of two variants as those of one, which did the work of both."""
    return tuple(
        Turn(units=one.units + other.units, seconds=one.seconds + other.seconds, cpu=one.cpu + other.cpu)
        for one, other in zip(first, second, strict=True)
    )


def milliseconds(name: str, turns: Sequence[Turn]) -> Figure:
    """Milliseconds of a step."""
    return median(name, [1000 * turn.seconds / turn.units for turn in turns], "ms")
