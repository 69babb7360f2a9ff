"""Cost of a channel: a stage whose tokens have a language or a box each, compared with the same stage without."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

import pyarrow
import pyarrow.parquet

from benchmarks.harness.benchmark import Benchmark, Setting
from benchmarks.harness.miniatures import STEP_TOKENS
from benchmarks.harness.paced import pace
from benchmarks.harness.record import Figure, Goal, Measured
from benchmarks.harness.stages import Stages
from benchmarks.harness.turns import Turns, rate, ratio
from benchmarks.masked_lm import SIZES, recipe
from pipelines.corpora.documentation.docstrings import documentation
from pipelines.task_families.writing_systems import join_words
from tests.small_corpus import documents, write_tables

PLAIN = "no channel"
LENGTH = 128
CHANNELS = {"languages": "{name: languages, order: [en, zh], of: en}", "boxes": "boxes"}
"""Embedding → the annotation that makes its channel."""
VARIANTS = {PLAIN: "train", **{channel: channel for channel in CHANNELS}}
"""Variant → its stage."""
DOCUMENTS, WORDS, LINE = 8_000, 200, 8
"""Documents of the corpus; words of a document, and of one of its lines."""
STEPS = {"tiny": 32, "mini": 10, "small": 4}
"""Steps in a turn, by network: about two seconds."""
ROUNDS = 15


def compared(size: str, channel: str) -> str:
    """The figure that compares a channel with none, for a network of `size`."""
    return f"{size}: {channel}"


class ChannelCost(Benchmark):
    """All stages read the same rows from the same weights; the tables of a channel are new. A language is one look-up
    in one small table, a box six look-ups in four tables of 1,024 rows, which the optimizer updates as well."""

    name = "channels"
    what = (
        "Tokens per second of masked-LM pre-training, BERT-tiny, -mini and -small, 4,096 tokens per step in rows of "
        f"{LENGTH}, dropout 0.1, bfloat16: a stage whose network reads a channel, compared with the same without."
    )
    goals: ClassVar[tuple[Goal, ...]] = tuple(
        Goal(figure=compared(size, channel), at_least=0.99) for size in SIZES for channel in CHANNELS
    )

    def measure(self, setting: Setting) -> Measured:
        written = pages(setting)
        figures: list[Figure] = []
        turns: Turns = {}
        notes: list[str] = []
        for name in list(SIZES)[: 1 if setting.quick else None]:
            stages = planned(setting, name, written)
            stages.make("initial")
            loops = {variant: stages.loop(stage, STEP_TOKENS)[0] for variant, stage in VARIANTS.items()}
            rounds, steps = (2, 2) if setting.quick else (ROUNDS, STEPS[name])
            paces = pace(loops, stages.folder, rounds=rounds, seconds=0, warm=4, steps=steps)
            turns |= {f"{name}: {variant}": taken for variant, taken in paces.turns.items()}
            notes += paces.notes(f"{name}: ")
            for channel in CHANNELS:
                if not paces.failed:
                    figures.append(ratio(compared(name, channel), paces.turns[channel], paces.turns[PLAIN], PLAIN))
            figures += [rate(f"{name}: {variant}", taken, "tokens/s") for variant, taken in paces.turns.items()]
        return Measured(figures=tuple(figures), turns=turns, notes=tuple(notes))


def planned(setting: Setting, size: str, written: dict[str, Path]) -> Stages:
    """The stages for a network of `size`."""
    text = recipe(SIZES[size], size, LENGTH, setting.quick)
    begin = text.index("backbone: {") + len("backbone: {")
    backbone = " ".join(text[begin : text.index("}}", begin) + 1].split())
    for channel, annotation in CHANNELS.items():
        text += (
            f"  {channel}: {{like: train, annotations: [{annotation}], "
            f"backbone: {{{backbone}, embeddings: [{channel}]}}}}\n"
        )
    return Stages(setting, size, text, written)


def pages(setting: Setting) -> dict[str, Path]:
    """Paths of tables, by name; every document of `general` is a page whose words stand in lines."""
    folder = setting.folder("tables")
    paths = write_tables(folder)
    texts: Iterator[str] = iter(documents("json", "argparse", "logging"))
    if not setting.quick:
        texts = (text for text, _ in islice(documentation("general"), DOCUMENTS))
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist([_page(text) for text in texts]), paths["general"])
    return paths


def _page(text: str) -> dict[str, Any]:
    words = text.split()[:WORDS]
    cells = [(number % LINE, number // LINE) for number in range(len(words))]
    boxes = [[100 * x, 20 * y, 100 * x + 90, 20 * y + 15] for x, y in cells]
    page = [100 * LINE, 20 * WORDS // LINE]
    return {"text": join_words(words), "tokens": words, "boxes": boxes, "page": page}
