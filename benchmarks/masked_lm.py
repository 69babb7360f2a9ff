"""Speed of masked-LM pre-training, compared with transformers' Trainer and with its own matrix products."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from benchmarks.harness import floor
from benchmarks.harness.benchmark import Benchmark, Setting, missing
from benchmarks.harness.best import AT_ITS_BEST, TRAINER_WAYS, against_best, in_our_environment, way
from benchmarks.harness.cases import measured
from benchmarks.harness.floor import Shape
from benchmarks.harness.kept_cases import kept
from benchmarks.harness.miniatures import RATE, STEP_TOKENS, initial
from benchmarks.harness.paced import Loop, Paces, as_it_comes, pace
from benchmarks.harness.record import Figure, Goal, Measured
from benchmarks.harness.stages import Stages, tables
from benchmarks.harness.turns import ratio
from tasks.launchers.environment import training_environment

STEPS = 4000
"""Length of the schedule; no run gets that far."""
LENGTHS = (128, 512)
PEER, FLOOR, OURS = "HF Trainer", "matmul floor", "cursus"
USUAL, BEST = f"{PEER} as run_mlm", f"{PEER} {AT_ITS_BEST}"
OF_THE_FLOOR = 0.55
"""Goal: share of the floor."""
TRAIN = """\
  train:
    kind: adapt_domain
    start: initial
    corpus: general
    budget: {{tokens: {tokens}, batch_tokens: {step_tokens}, length: {length}}}
"""
"""Both sides start from the artifact of `initial`: a tokenizer and random weights."""


@dataclass(frozen=True)
class Size:
    """One of BERT's miniatures (Turc et al. 2019), and its goals."""

    layers: int
    hidden: int
    usual: float
    """Goal: speed-up over the Trainer as run_mlm.py runs it."""
    best: float
    """Goal: speed-up over the Trainer with its best flags."""

    @property
    def heads(self) -> int:
        return self.hidden // 64

    def shape(self, length: int, vocabulary: int) -> Shape:
        rows = STEP_TOKENS // length
        return Shape(self.layers, self.hidden, self.heads, 4 * self.hidden, vocabulary, rows, length, RATE)


SIZES = {"tiny": Size(2, 128, 12, 5), "mini": Size(4, 256, 6, 2.5), "small": Size(4, 512, 3.5, 2)}


def case(size: str, length: int) -> str:
    """Prefix of the figures of one network and length."""
    return f"{size}, {length} tokens"


class MaskedLM(Benchmark):
    """Each variant is a process. The Trainer as run_mlm.py uses it has its users' environment, without settings; at its
    best it has that of a stage, and the fastest of three ways counts."""

    name = "masked_lm"
    what = (
        "Tokens per second of masked-LM pre-training, BERT-tiny, -mini and -small (2x128, 4x256, 4x512), 4,096 tokens "
        "per step, dropout 0.1, bfloat16: a stage as a launcher trains it, compared with transformers' Trainer as "
        "run_mlm.py uses it, and at its best: in the environment that a launcher sets, with SDPA, compiled with SDPA "
        "or compiled with eager attention, whichever is fastest. All start from the same weights, with the same "
        "optimizer and schedule."
    )
    slow = True
    goals: ClassVar[tuple[Goal, ...]] = tuple(
        goal
        for name, size in SIZES.items()
        for length in LENGTHS
        for goal in (
            Goal(figure=f"{case(name, length)}: against {USUAL}", at_least=size.usual),
            Goal(figure=f"{case(name, length)}: against {BEST}", at_least=size.best),
            Goal(figure=f"{case(name, length)}: of the {FLOOR}", at_least=OF_THE_FLOOR, unit=""),
        )
    )

    def unavailable(self) -> str | None:
        return missing("accelerate", "datasets")

    def measure(self, setting: Setting) -> Measured:
        return measured(self._cases(setting), compared)

    def _cases(self, setting: Setting) -> Iterator[tuple[str, Paces]]:
        text = tables(setting)
        for name, size in list(SIZES.items())[: 1 if setting.quick else None]:
            for length in LENGTHS[: 1 if setting.quick else None]:
                take = partial(self._case, setting, size, f"{name}_{length}", length, text)
                yield case(name, length), kept(setting, case(name, length), take)

    def _case(self, setting: Setting, size: Size, name: str, length: int, text: dict[str, Path]) -> Paces:
        stages = Stages(setting, name, recipe(size, name, length, setting.quick), text)
        initial = stages.make("initial")
        ours, _ = stages.loop("train", STEP_TOKENS)
        vocabulary = json.loads((initial / "config.json").read_bytes())["vocab_size"]
        shape = floor.write_order(stages.folder / "shape.json", size.shape(length, vocabulary), setting.threads)
        loops = {
            OURS: ours,
            USUAL: trainer(setting, stages.folder / "usual", initial, text["general"], length),
            FLOOR: Loop("benchmarks.harness.floor", shape, STEP_TOKENS, training_environment()),
        }
        if setting.quick:  # compiling takes most of a minute
            return pace(loops, stages.folder, rounds=2, seconds=1, warm=1)
        for number, (name, settings) in enumerate(TRAINER_WAYS.items()):
            one = trainer(setting, stages.folder / f"best{number}", initial, text["general"], length, **settings)
            loops[way(PEER, name)] = replace(one, environment=in_our_environment(setting))
        return pace(loops, stages.folder, rounds=5, seconds=5, steps=2)


def recipe(size: Size, name: str, length: int, quick: bool, steps: int = STEPS) -> str:
    """The recipe of one case."""
    begins = initial(name, size.layers, size.hidden, quick=quick, length=length)
    return begins + TRAIN.format(step_tokens=STEP_TOKENS, length=length, tokens=steps * STEP_TOKENS)


def trainer(
    setting: Setting,
    folder: Path,
    model: Path,
    table: Path,
    length: int,
    steps: int = STEPS,
    seed: int = 0,
    **overrides: Any,
) -> Loop:
    """The Trainer on the same text, from the same weights."""
    folder.mkdir()
    order = folder / "order.json"
    settings = {
        "task": "masked", "model": str(model), "table": str(table), "cache": str(folder / "cache"), "length": length,
        "rate": RATE, "steps": steps, "warmup": round(0.1 * steps), "lr": 5e-4, "seed": seed,
        "rows_a_step": STEP_TOKENS // length, "curve": str(folder / "curve.jsonl"),
    }  # fmt: skip
    order.write_text(json.dumps(settings | overrides), encoding="utf-8")
    return Loop("benchmarks.peers.trainer", order, STEP_TOKENS, as_it_comes(setting))


def compared(name: str, paces: Paces) -> list[Figure]:
    """The ratios of a case."""
    turns = paces.turns
    if OURS not in turns:
        return []
    figures = [ratio(f"{name}: against {USUAL}", turns[OURS], turns[USUAL], USUAL)] if USUAL in turns else []
    figures += against_best(f"{name}: ", turns[OURS], turns, PEER, TRAINER_WAYS)
    if FLOOR in turns:
        figures.append(ratio(f"{name}: of the {FLOOR}", turns[OURS], turns[FLOOR], FLOOR, unit=""))
    return figures
