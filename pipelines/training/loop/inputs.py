"""Inputs of a training stage: its tokenizer, its task, its training batches and its validation."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pipelines.corpora.engines.work import reporting
from pipelines.corpora.shards.example_table import ExampleTable, JoinedRows
from pipelines.errors import DataError, RecipeError
from pipelines.lineage.results import SCRATCH
from pipelines.models.features import encode_part
from pipelines.models.opening import open_tokenizer
from pipelines.models.reading import complete_batches
from pipelines.parts.heads import FeatureTokenizer
from pipelines.parts.mixing import Mixing
from pipelines.recipe.lines import line_views
from pipelines.task_families import Row, Task
from pipelines.task_families.labelled_tables import labelled_table, read_as, tasks_in
from pipelines.training.activity import Activity
from pipelines.training.assembly.new_words import add_words
from pipelines.training.batches.augmented_examples import AugmentedExamples, changes
from pipelines.training.batches.encoded_documents import TEXT
from pipelines.training.batches.examples import ExampleBatches
from pipelines.training.batches.few_labels import subsample
from pipelines.training.batches.plain_text import PlainBatches
from pipelines.training.batches.reading_texts import read_beginning
from pipelines.training.batches.stage_batches import StageBatches
from pipelines.training.batches.stored_examples import encode_stored
from pipelines.training.batches.token_shards import token_stream
from pipelines.training.loop.validation import StageValidation, Validation
from pipelines.training.ranks import process_group

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

    from pipelines.recipe.job import Job
    from pipelines.task_families.encoding import EncodedExamples

TRAIN, VALIDATION = "train", "validation"


def lines_of(job: Job) -> dict[str, Job]:
    """Line → the job that would train this line alone; `{"": job}` for a stage without lines.

    Each line draws with a seed of its own, so that two lines of one corpus do not read the same rows together.
    """
    if not job.stage.lines:
        return {"": job}
    jobs = {}
    for name, view in line_views(job.stage).items():
        tables = {table: path for table, path in job.tables.items() if read_as(table) in view.corpus}
        family = next((job.families[task] for task in tasks_in(tables) if task in job.families), job.family)
        changed = {"stage": view, "seed": _line_seed(job.seed, name), "tables": tables, "family": family}
        jobs[name] = job.model_copy(update=changed)
    return jobs


def _line_seed(seed: int, line: str) -> int:
    return int(np.random.SeedSequence([seed, 10, *line.encode()]).generate_state(1)[0])


def batches_of(
    job: Job,
    tasks: Mapping[str, Task | None],
    tokenizer: PreTrainedTokenizerFast,
    features: Sequence[FeatureTokenizer] = (),
) -> StageBatches:
    """The training batches of a stage, whose lines have the tasks `tasks`; None for a line on plain text.

    `features` are the tokenizers of the networks that the stage's network reads.
    """
    jobs = lines_of(job)
    batches = [_line_batches(one, name, tasks[name], tokenizer, features) for name, one in jobs.items()]
    if not job.stage.lines:
        return StageBatches(batches, job.seed)
    budget, mixing = job.stage.budget, job.stage.mixing or Mixing.default()
    sizes = [one.steps_per_epoch for one in batches]
    if budget.tokens is None:
        steps = round((budget.epochs or 1) * sum(sizes))
    else:
        steps = budget.tokens // max(one.tokens_per_batch for one in batches)
    order = mixing.order(tuple(jobs), sizes, max(1, steps), job.seed)
    return StageBatches(batches, job.seed, order)


def _line_batches(
    job: Job, name: str, task: Task | None, tokenizer: PreTrainedTokenizerFast, features: Sequence[FeatureTokenizer]
) -> PlainBatches | ExampleBatches:
    return _plain_batches(job, tokenizer) if task is None else _example_batches(job, name, task, tokenizer, features)


def _plain_batches(job: Job, tokenizer: PreTrainedTokenizerFast) -> PlainBatches:
    stage, budget = job.stage, job.stage.budget
    tables = list(tables_of(job).values())
    cache = job.cache or job.out / SCRATCH / "tokens"
    activity = Activity(job.out)
    with reporting(lambda line: activity(f"tokenising texts: {line}")):
        stream = process_group.rank_zero_first(
            lambda: token_stream(
                tables,
                tokenizer,
                stage.segmentation,
                budget.tokens,
                cache,
                job.runtime.threads,
                stage.annotations,
                stage.texts,
            )
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
        attention=stage.attention,
    )


def _example_batches(
    job: Job, name: str, task: Task, tokenizer: PreTrainedTokenizerFast, features: Sequence[FeatureTokenizer]
) -> ExampleBatches:
    """Batches of labelled examples; or, where a teacher labels them, also of the task's unlabelled texts."""
    stage, budget = job.stage, job.stage.budget
    assert budget.epochs is not None
    table = examples_of(job, TRAIN)
    rows: Sequence[Row] = table
    if budget.labelled is not None:
        labels = table.values(job.family.target[0]) if job.family.is_single_text else None
        rows = table.take(subsample(len(table), budget.labelled, job.seed, labels))
    labelled = "task_text" not in stage.corpus
    if not labelled:
        rows = JoinedRows(rows, ExampleTable(job.tables["task_text"], ["text"]))
    encoded = _encoded(job, rows, _stored(job, name, TRAIN), task, tokenizer, features, answers=labelled)
    per_epoch = math.ceil(len(encoded) / budget.batch_texts)
    steps = max(1, round(budget.epochs * per_epoch))
    augmented = _augmented(job, encoded, task, tokenizer, features, answers=labelled) if stage.augmentation else None
    return ExampleBatches(encoded, size=budget.batch_texts, steps=steps, seed=job.seed, augmented=augmented)


def _augmented(
    job: Job,
    items: EncodedExamples,
    task: Task,
    tokenizer: PreTrainedTokenizerFast,
    features: Sequence[FeatureTokenizer],
    *,
    answers: bool,
) -> AugmentedExamples:
    """`items` as the stage's augmentation changes them in each epoch."""
    stage, head = job.stage, job.stage.head
    assert head is not None
    if unfit := next(
        (why for one in stage.augmentation if (why := one.attack.unfit(job.family.name, job.language))), ""
    ):
        raise RecipeError(f"stage {job.stage_name}: augmentation: {unfit}")

    def encode(rows: Sequence[Row]) -> EncodedExamples:
        encoded = encode_part(head, rows, task, tokenizer, stage.budget.length, features, answers=answers)
        encoded.complete = items.complete
        return encoded

    return AugmentedExamples(items, encode, changes(stage.augmentation, job.family, job.seed, job.language))


def _encoded(
    job: Job,
    rows: Sequence[Row],
    folder: Path,
    task: Task,
    tokenizer: PreTrainedTokenizerFast,
    features: Sequence[FeatureTokenizer],
    *,
    answers: bool = True,
) -> EncodedExamples:
    """`rows` as the batches of the stage read them. Rank 0 stores many in `folder`, and all map them."""
    stage, head = job.stage, job.stage.head
    assert head is not None
    length = stage.budget.length

    def encode(some: Sequence[Row]) -> EncodedExamples:
        return encode_part(head, some, task, tokenizer, length, features, answers=answers)

    encoded = process_group.rank_zero_first(lambda: encode_stored(rows, encode, folder, Activity(job.out)))
    head.check_encoded(encoded, length, features)
    complete_batches(encoded, stage, tokenizer, length)
    return encoded


def _stored(job: Job, line: str, part: str) -> Path:
    return job.out / SCRATCH / "encoded" / (line or "stage") / part


def validation_of(
    job: Job,
    tasks: Mapping[str, Task | None],
    tokenizer: PreTrainedTokenizerFast,
    features: Sequence[FeatureTokenizer] = (),
) -> StageValidation | None:
    """The validation of the labelled lines of a stage; None where it has none."""
    lines = {}
    for name, one in lines_of(job).items():
        head, task = one.stage.head, tasks[name]
        if task is not None:
            assert head is not None
            rows = examples_of(one, VALIDATION).sample(one.stage.budget.validation, job.seed)
            encoded = _encoded(one, rows, _stored(one, name, VALIDATION), task, tokenizer, features)
            lines[name] = Validation(head, task, encoded, tokenizer)
    return StageValidation(lines) if lines else None


def tasks_of(job: Job) -> dict[str, Task | None]:
    """Line → its task, with the labels of its training table; None for a line on plain text."""
    return {name: _task_of(one) for name, one in lines_of(job).items()}


def _task_of(job: Job) -> Task | None:
    if job.stage.kind.reads_plain_text:
        return None
    return Task(job.family, tuple(job.family.labels(examples_of(job, TRAIN))), job.stage.annotations)


def examples_of(job: Job, part: str) -> ExampleTable:
    """One part of the task that the stage, or its line, answers. Raises DataError when it has no rows."""
    (task,) = tasks_in(job.tables)
    path = job.tables[labelled_table(task, part)]
    table = ExampleTable(path)
    if not table:
        raise DataError(f"{path}: no examples")
    return table


def tables_of(job: Job) -> dict[str, Path]:
    """Name → path of the tables whose texts the stage trains on, over all of its lines."""
    tasks = tasks_in(job.tables)
    words = [word for view in line_views(job.stage).values() for word in view.corpus]
    names = [labelled_table(word, "train") if word in tasks else word for word in dict.fromkeys(words)]
    return {name: job.tables[name] for name in names}


def columns_of(job: Job) -> dict[Path, tuple[str, ...]]:
    """Path → columns of `tables_of` whose texts the stage trains on; without those of which `text` alone is read."""
    columns: dict[str, dict[str, None]] = {}
    for view in line_views(job.stage).values():
        for word in view.corpus:
            columns.setdefault(word, {}).update(dict.fromkeys(view.texts or (TEXT,)))
    return {job.tables[word]: tuple(names) for word, names in columns.items() if [*names] != [TEXT]}


def tokenizer_of(job: Job) -> PreTrainedTokenizerFast:
    """The tokenizer of the start, with new words where the stage has a `vocabulary`; without a start, a newly trained
    one."""
    stage, texts = job.stage, list(tables_of(job).values())
    if job.start is None:
        assert stage.tokenizer is not None
        limit = getattr(stage.tokenizer, "sample_bytes", math.inf)
        return stage.tokenizer.train(read_beginning(texts, limit, columns_of(job)))
    tokenizer = open_tokenizer(job.start)
    if stage.vocabulary is not None:
        beginning = read_beginning(texts, stage.vocabulary.sample_bytes, columns_of(job))
        add_words(tokenizer, beginning, stage.vocabulary.tokens)
    return tokenizer
