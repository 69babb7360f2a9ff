"""Inputs of a training stage: its tokenizer, its task, its training batches and its validation."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

from pipelines.errors import DataError
from pipelines.lineage.results import SCRATCH
from pipelines.models.opening import open_tokenizer
from pipelines.task_families import Row, Task
from pipelines.task_families.labelled_tables import labelled_table, tasks_in
from pipelines.training.assembly.new_words import add_words
from pipelines.training.batches.examples import ExampleBatches
from pipelines.training.batches.few_labels import subsample
from pipelines.training.batches.plain_text import PlainBatches
from pipelines.training.batches.reading_texts import read_beginning
from pipelines.training.batches.token_shards import token_stream
from pipelines.training.loop.validation import Validation
from pipelines.training.ranks import process_group

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

    from pipelines.recipe.job import Job


def batches_of(job: Job, task: Task | None, tokenizer: PreTrainedTokenizerFast) -> PlainBatches | ExampleBatches:
    """The training batches of a stage."""
    return _plain_batches(job, tokenizer) if task is None else _example_batches(job, task, tokenizer)


def _plain_batches(job: Job, tokenizer: PreTrainedTokenizerFast) -> PlainBatches:
    stage, budget = job.stage, job.stage.budget
    tables = list(tables_of(job).values())
    cache = job.cache or job.out / SCRATCH / "tokens"
    stream = process_group.rank_zero_first(
        lambda: token_stream(tables, tokenizer, stage.segmentation, budget.tokens, cache, job.runtime.threads)
    )
    rows = max(1, budget.batch_tokens // budget.length)
    tokens = budget.tokens if budget.tokens is not None else round((budget.epochs or 1) * len(stream.tokens))
    return PlainBatches(
        stream,
        tokenizer,
        stage.layout,
        stage.corruption,
        rows=rows,
        length=budget.length,
        steps=max(1, tokens // (rows * budget.length)),
        seed=job.seed,
        corruption_shards=budget.corruption_shards,
    )


def _example_batches(job: Job, task: Task, tokenizer: PreTrainedTokenizerFast) -> ExampleBatches:
    """Batches of labelled examples; or, where a teacher labels them, also of the task's unlabelled texts."""
    stage, budget = job.stage, job.stage.budget
    assert stage.head is not None and budget.epochs is not None
    rows: list[Row] = _rows(job, "train")
    if budget.labelled is not None:
        rows = subsample(rows, budget.labelled, job.seed, job.family.target[0] if job.family.is_single_text else None)
    labelled = "task_text" not in stage.corpus
    if not labelled:
        rows = [*rows, *({"text": text} for text in _column(job.tables["task_text"], "text"))]
    encoded = stage.head.encode(rows, task, tokenizer, budget.length, answers=labelled)
    per_epoch = math.ceil(len(encoded) / budget.batch_texts)
    steps = max(1, round(budget.epochs * per_epoch))
    return ExampleBatches(encoded, size=budget.batch_texts, steps=steps, seed=job.seed)


def validation_of(job: Job, task: Task, tokenizer: PreTrainedTokenizerFast) -> Validation:
    head = job.stage.head
    assert head is not None
    encoded = head.encode(_rows(job, "validation"), task, tokenizer, job.stage.budget.length)
    return Validation(head, task, encoded, tokenizer)


def task_of(job: Job) -> Task | None:
    """The task of a stage, with the labels of its training table; None for a stage on plain text."""
    if job.stage.kind.reads_plain_text:
        return None
    return Task(job.family, tuple(job.family.labels(_rows(job, "train"))))


def _rows(job: Job, part: str) -> list[Row]:
    """The rows of one part of the task that the stage answers. Raises DataError when there are none."""
    import pyarrow.parquet as parquet

    (task,) = tasks_in(job.tables)
    path = job.tables[labelled_table(task, part)]
    rows: list[Row] = parquet.read_table(path).to_pylist()
    if not rows:
        raise DataError(f"{path}: no examples")
    return rows


def _column(path: Path, name: str) -> list[str]:
    import pyarrow.parquet as parquet

    values: list[str] = parquet.read_table(path, columns=[name])[name].to_pylist()
    return values


def tables_of(job: Job) -> dict[str, Path]:
    """Name → path of the tables whose texts the stage trains on."""
    tasks = tasks_in(job.tables)
    names = [labelled_table(word, "train") if word in tasks else word for word in job.stage.corpus]
    return {name: job.tables[name] for name in names}


def tokenizer_of(job: Job) -> PreTrainedTokenizerFast:
    """The tokenizer of the start, with new words where the stage has a `vocabulary`; without a start, a newly trained
    one."""
    stage, texts = job.stage, list(tables_of(job).values())
    if job.start is None:
        assert stage.tokenizer is not None
        return stage.tokenizer.train(read_beginning(texts, getattr(stage.tokenizer, "sample_bytes", math.inf)))
    tokenizer = open_tokenizer(job.start)
    if stage.vocabulary is not None:
        add_words(tokenizer, read_beginning(texts, stage.vocabulary.sample_bytes), stage.vocabulary.tokens)
    return tokenizer
