"""Models with random weights and real tokenizers, saved as stages save theirs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet

from pipelines.judging.probes.examples import Examples
from pipelines.judging.probes.model import ProbedModel
from pipelines.judging.subjects import Subject
from pipelines.models.opening import ModelRecord, build_network
from pipelines.parts.annotations import Annotation
from pipelines.parts.backbones import Backbone
from pipelines.parts.embeddings import Embedding
from pipelines.parts.heads import Head
from pipelines.parts.tokenizers import Tokenizer
from pipelines.recipe.job import Job
from pipelines.recipe.schema import Stage
from pipelines.task_families import Task, TaskFamily
from tests.small_corpus import documents

BODY = {
    "name": "transformer",
    "positions": 128,
    "dims": {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 48},
}


def save_model(
    folder: Path,
    seed: int = 0,
    head: str = "masked_lm",
    task: Task | None = None,
    body: dict[str, Any] = BODY,
    numbered: int | None = None,
) -> Path:
    """A body of random weights, wide enough apart to tell words, under `head`; `numbered` is the task for which it
    reads every token, of three."""
    import torch

    tokenizer = Tokenizer.model_validate({"name": "wordpiece", "vocab_size": 600}).train(documents("json", "argparse"))
    config = Backbone.model_validate(body).config(tokenizer, 128)
    one_value = {"name": "one_value", "channel": "tasks", "value": numbered, "size": 3}
    record = ModelRecord(
        head=Head.model_validate(head),
        family=task.family if task else None,
        labels=task.labels if task else (),
        annotations=() if numbered is None else (Annotation.model_validate(one_value),),
        embeddings=() if numbered is None else (Embedding.model_validate({"name": "task_numbers", "size": 3}),),
    )
    torch.manual_seed(seed)
    network = build_network(record, config)
    with torch.no_grad():
        for name, weights in network.named_parameters():
            if weights.ndim > 1 and "position" not in name:
                weights.mul_(5)
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def write_table(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    return path


def opened(folder: Path, tables: dict[str, Path], family: str, most: int = 1000, length: int = 64) -> ProbedModel:
    """The model in `folder` with the examples of `tables`."""
    examples = Examples(tables, TaskFamily.model_validate(family), 0, most)
    return ProbedModel(Subject(stage="general", seed=0, fingerprint="0" * 64, folder=folder), examples, length, 0, "en")


def job_on(folders: dict[str, list[Path]], tables: dict[str, Path], family: str, probes: list[Any], out: Path) -> Job:
    """A job of a probe stage over stages whose models, one a seed, lie in `folders`."""
    stage = Stage.model_validate({"kind": "probe", "start": [*folders], "probes": probes, "budget": {"length": 64}})
    subjects = [
        Subject(stage=name, seed=seed, fingerprint=f"{number}{seed}".ljust(64, "0"), folder=folder)
        for number, (name, made) in enumerate(folders.items())
        for seed, folder in enumerate(made)
    ]
    return Job(
        fingerprint="f" * 64,
        recipe="small",
        stage_name="probes",
        stage=stage,
        seed=0,
        language="en",
        family=TaskFamily.model_validate(family),
        subjects=tuple(subjects),
        tables=tables,
        out=out,
    )
