"""A stage that trains: tokenizer ▸ batches ▸ network ▸ Lightning ▸ Hugging Face folder."""

from __future__ import annotations

import logging
import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pipelines.errors import DataError, RecipeError
from pipelines.lineage.results import CHECKPOINTS, COMPILED, METRICS, SCRATCH, Result
from pipelines.models.classifier import load_classifier
from pipelines.models.opening import open_tokenizer
from pipelines.parts.accelerators import Accelerator, every_accelerator
from pipelines.parts.distributions import Distribution
from pipelines.parts.objectives import Companion
from pipelines.task_families import Row, Task
from pipelines.training.assembly.assemble import assemble, set_dropout
from pipelines.training.assembly.companions import CompanionFactory, save_companions
from pipelines.training.assembly.export import export, finished
from pipelines.training.assembly.fertility import check_suited
from pipelines.training.assembly.new_words import add_words
from pipelines.training.batches.examples import ExampleBatches
from pipelines.training.batches.few_labels import fewer
from pipelines.training.batches.micro_batches import Pieces, cut_for
from pipelines.training.batches.plain_text import PlainBatches
from pipelines.training.batches.reading_texts import beginning
from pipelines.training.batches.token_shards import token_stream
from pipelines.training.checkpoints.folder import Checkpoints
from pipelines.training.loop.module import StageModule
from pipelines.training.loop.stopping import Stop
from pipelines.training.loop.validation import Validation
from pipelines.training.metrics_log import MetricsLog
from pipelines.training.ranks import process_group as group
from pipelines.vocabulary import Ability

if TYPE_CHECKING:
    from torch.utils.data import Dataset
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

    from pipelines.recipe.job import Job
    from pipelines.training.checkpoints.best_weights import BestWeights


def fit(job: Job) -> Result:
    """Compute a training step and write its model folder into `job.out`.

    Continues from the checkpoint that an interrupted run left in `job.out`; the weights are then those of an
    uninterrupted run. Raises DataError or RecipeError for what only the data or the weights can reveal.
    """
    import pytorch_lightning as lightning

    stage = job.stage
    tokenizer = _tokenizer(job)
    task = task_of(job)
    lightning.seed_everything(job.seed, verbose=False)
    measured = check_suited(stage, job.stage_name, _tables(job), tokenizer, job.language) if stage.trains else {}
    network = assemble(stage, job.start, tokenizer, task, job.runtime.accelerator)
    parameters = sum(parameter.numel() for parameter in network.parameters())
    result, companions, accelerators = Result(), dict[str, Companion](), list[Accelerator]()
    if stage.trains:
        factory = CompanionFactory(job, network)
        for objective in stage.objective:
            companions |= objective.companions(factory)
        for trained in (network, *(one.network for one in companions.values() if one.trains)):
            set_dropout(trained, stage.dropout)
        if stage.kind.reads_plain_text and Ability.WITHIN_DOCUMENTS in stage.layout.needs_body:
            from pipelines.networks.document_attention import attend_within_documents

            for asked in (network, *(one.network for one in companions.values())):
                attend_within_documents(asked)
        asked_of = [network, *(one.network for one in companions.values())]
        accelerators = _accelerated(asked_of, job)
        result, network = _train(job, network, companions, tokenizer, task, accelerators)
    if group.rank() > 0:
        return result  # the first writes
    conversions = [compression for compression in stage.compression if compression.replaces_weights]
    exported = job.out / SCRATCH / "exported" if conversions else job.out
    export(network, tokenizer, stage.budget.length, exported)
    save_companions(companions, exported)
    for conversion in conversions:
        conversion.convert(exported, load_classifier(exported), job.out)
    told = {"parameters": parameters, "metrics": {**result.metrics, **measured}, "compiled": bool(accelerators)}
    return result.model_copy(update=told)


def _accelerated(networks: Sequence[PreTrainedModel], job: Job) -> list[Accelerator]:
    """The accelerators that `networks` compute with from now on."""
    folder = (job.cache or job.out / SCRATCH) / COMPILED

    def given() -> list[Accelerator]:
        fitting = [one for one in every_accelerator() if one.applies(job.runtime.accelerator)]
        return [one for one in fitting if one.give(networks, folder)]

    return group.first_then_others(given)


def _train(
    job: Job,
    network: PreTrainedModel,
    companions: dict[str, Companion],
    tokenizer: PreTrainedTokenizerFast,
    task: Task | None,
    accelerators: Sequence[Accelerator],
) -> tuple[Result, PreTrainedModel]:
    import pytorch_lightning as lightning
    import torch
    from lightning_fabric.plugins.environments.lightning import LightningEnvironment
    from lightning_fabric.plugins.environments.torchelastic import TorchElasticEnvironment
    from pytorch_lightning.callbacks import EarlyStopping
    from torch.utils.data import DataLoader

    from pipelines.training.checkpoints.best_weights import BestWeights
    from pipelines.training.checkpoints.local_files import LocalFiles
    from pipelines.training.loop.resume import ResumePoint
    from pipelines.training.loop.unprofiled import Unprofiled

    stage, scratch = job.stage, job.out / SCRATCH
    batches = batches_of(job, task, tokenizer)
    validation: Validation | None = None
    every: int | None = None
    if task is not None:
        validation = _validation(job, task, tokenizer)
        every = min(len(batches), batches.steps_per_epoch)
    tokens = batches.tokens_per_batch
    cut = cut_for(
        stage,
        rank=group.rank(),
        ranks=group.ranks(),
        grains=batches.grains,
        tokens=tokens,
        device_tokens=job.runtime.device_tokens,
    )
    together = cut.ranks > 1
    distribution = job.runtime.distribution if together else Distribution.usually()
    if distribution.divides and any(one.trains for one in companions.values()):
        raise RecipeError(
            f"training.distribution: {distribution.name} divides one network, and stage {job.stage_name} trains another "
            "beside it; use ddp"
        )
    log = MetricsLog(job.out / METRICS, job.runtime.log_every, tokens)
    stop = Stop()
    module = StageModule(stage, network, companions, batches, cut, distribution, validation, log, stop, accelerators)

    checkpoints = Checkpoints(scratch / CHECKPOINTS, log)
    resume = group.told_by_first(checkpoints.newest() if group.rank() == 0 else None)
    if resume is None and group.rank() == 0:
        # an attempt that ended before its first checkpoint counts for nothing
        (job.out / METRICS).unlink(missing_ok=True)
    callbacks: list[lightning.Callback] = []
    best: BestWeights | None = None
    if validation is not None:
        best = BestWeights(scratch, network, distribution, validation.monitor)
        callbacks.append(best)
        if stage.budget.patience is not None:
            callbacks.append(EarlyStopping(validation.monitor, mode="max", patience=stage.budget.patience))
    callbacks.append(ResumePoint(checkpoints, job.runtime.checkpoint_every, every))
    with _quiet(), stop:
        trainer = lightning.Trainer(
            accelerator=job.runtime.accelerator,
            devices=job.runtime.devices,
            num_nodes=job.runtime.nodes,
            strategy=distribution.strategy(cut.ranks) if together else "auto",
            # whoever started the ranks says who they are in torchrun's words; alone, nothing is looked for
            plugins=[TorchElasticEnvironment() if together else LightningEnvironment(), LocalFiles()],
            use_distributed_sampler=False,
            accumulate_grad_batches=cut.accumulated,
            precision=stage.optimizer.precision,  # type: ignore[arg-type]  # `auto` was resolved when planning
            max_epochs=1,
            max_steps=len(batches),
            val_check_interval=every and every * cut.accumulated,
            num_sanity_val_steps=0,
            logger=False,
            profiler=Unprofiled(),
            callbacks=callbacks,
            enable_progress_bar=False,
            enable_model_summary=False,
            default_root_dir=scratch,
        )
        held_out = None
        if validation is not None:
            # a generator of its own: a loader draws a number each time it is walked through, and training's own random
            # numbers must not depend on whether a validation lies between a checkpoint and the next step
            in_order = cast("Dataset[Any]", validation.batches)
            held_out = DataLoader(in_order, batch_size=None, generator=torch.Generator())
        trainer.fit(module, Pieces(batches, cut, stage, network), held_out, ckpt_path=resume, weights_only=True)
    network = finished(network, best, distribution, checkpoints)
    metrics: dict[str, Any] = dict(log.last)
    if module.trained_share < 1:
        metrics["trained_share"] = round(module.trained_share, 6)
    if best is not None and best.score is not None:
        metrics[best.monitor] = round(best.score, 6)
    result = Result(
        metrics=metrics,
        tokens=trainer.global_step * tokens,
        steps=trainer.global_step,
        resumed_from_step=batches.start or None,
        passed_over=tuple(checkpoints.passed_over),
    )
    return result, network


def batches_of(job: Job, task: Task | None, tokenizer: PreTrainedTokenizerFast) -> PlainBatches | ExampleBatches:
    """What a stage trains on, from its first step on."""
    return _plain_batches(job, tokenizer) if task is None else _example_batches(job, task, tokenizer)


def _plain_batches(job: Job, tokenizer: PreTrainedTokenizerFast) -> PlainBatches:
    stage, budget = job.stage, job.stage.budget
    tables = list(_tables(job).values())
    cache = job.cache or job.out / SCRATCH / "tokens"
    stream = group.first_then_others(
        lambda: token_stream(tables, tokenizer, stage.segmentation, budget.tokens, cache, job.runtime.threads)
    )
    rows = max(1, budget.batch_tokens // budget.length)
    wanted = budget.tokens if budget.tokens is not None else round((budget.epochs or 1) * len(stream.tokens))
    return PlainBatches(
        stream,
        tokenizer,
        stage.layout,
        stage.corruption,
        rows=rows,
        length=budget.length,
        steps=max(1, wanted // (rows * budget.length)),
        seed=job.seed,
        grains=budget.grains,
    )


def _example_batches(job: Job, task: Task, tokenizer: PreTrainedTokenizerFast) -> ExampleBatches:
    """Batches of labelled examples; or, where a teacher labels them, also of the task's unlabelled texts."""
    stage, budget = job.stage, job.stage.budget
    assert stage.head is not None and budget.epochs is not None
    rows: list[Row] = _rows(job, "train")
    if budget.labelled is not None:
        rows = fewer(rows, budget.labelled, job.seed, job.family.target[0] if job.family.of_one_text else None)
    labelled = "task_text" not in stage.corpus
    if not labelled:
        rows = [*rows, *({"text": text} for text in _column(job.tables["task_text"], "text"))]
    encoded = stage.head.encode(rows, task, tokenizer, budget.length, answers=labelled)
    per_epoch = math.ceil(len(encoded) / budget.batch_texts)
    steps = max(1, round(budget.epochs * per_epoch))
    return ExampleBatches(encoded, size=budget.batch_texts, steps=steps, seed=job.seed)


def _validation(job: Job, task: Task, tokenizer: PreTrainedTokenizerFast) -> Validation:
    head = job.stage.head
    assert head is not None
    encoded = head.encode(_rows(job, "validation"), task, tokenizer, job.stage.budget.length)
    return Validation(head, task, encoded, tokenizer)


def task_of(job: Job) -> Task | None:
    """What the stage is asked: the closed set of answers is that of the training table."""
    if job.stage.kind.reads_plain_text:
        return None
    return Task(job.family, tuple(job.family.labels(_rows(job, "train"))))


def _rows(job: Job, table: str) -> list[Row]:
    import pyarrow.parquet as parquet

    rows: list[Row] = parquet.read_table(job.tables[table]).to_pylist()
    if not rows:
        raise DataError(f"{job.tables[table]}: no examples")
    return rows


def _column(path: Path, name: str) -> list[str]:
    import pyarrow.parquet as parquet

    values: list[str] = parquet.read_table(path, columns=[name])[name].to_pylist()
    return values


def _tables(job: Job) -> dict[str, Path]:
    """The tables whose texts the stage trains on."""
    names = ["train" if word == "task" else word for word in job.stage.corpus]
    return {name: job.tables[name] for name in names}


def _tokenizer(job: Job) -> PreTrainedTokenizerFast:
    """That of the start, with new words where the stage asks for them; else a new one, made for the stage's text."""
    stage, texts = job.stage, list(_tables(job).values())
    if job.start is None:
        assert stage.tokenizer is not None
        return stage.tokenizer.train(beginning(texts, getattr(stage.tokenizer, "sample_bytes", math.inf)))
    tokenizer = open_tokenizer(job.start)
    if stage.vocabulary is not None:
        add_words(tokenizer, beginning(texts, stage.vocabulary.sample_bytes), stage.vocabulary.tokens)
    return tokenizer


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence what Lightning says about choices that were made on purpose; our own log tells the user what happens."""
    for name in ("pytorch_lightning", "lightning_fabric", "pytorch_lightning.utilities.rank_zero"):
        logging.getLogger(name).setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=UserWarning, module="pytorch_lightning|lightning_")
        yield
