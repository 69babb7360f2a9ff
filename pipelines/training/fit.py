"""A stage that trains: tokenizer ▸ batches ▸ network ▸ Lightning ▸ Hugging Face folder."""

from __future__ import annotations

import logging
import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pipelines.errors import DataError, RecipeError
from pipelines.job import METRICS, SCRATCH, Job, Result
from pipelines.training.assemble import assemble, open_for_inference, open_tokenizer, set_dropout
from pipelines.training.module import MONITOR, StageModule
from pipelines.training.reporting import MetricsLog
from pipelines.training.texts import EncodedTexts, TextBatches
from pipelines.training.windows import PlainBatches, TokenStream

if TYPE_CHECKING:
    from torch.utils.data import Dataset
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

LAST, BEST = "last.ckpt", "best.ckpt"


def fit(job: Job) -> Result:
    """Compute a training step and write its model folder into `job.out`.

    Continues from the checkpoint that an interrupted run left in `job.out`; the weights are then those of an
    uninterrupted run. Raises DataError or RecipeError for what only the data or the weights can reveal.
    """
    import pytorch_lightning as lightning

    stage = job.stage
    tokenizer = _tokenizer(job)
    labels = _labels(job)
    lightning.seed_everything(job.seed, verbose=False)
    network = assemble(stage, job.start, tokenizer, labels, job.runtime.accelerator)
    parameters = sum(parameter.numel() for parameter in network.parameters())
    result = Result(parameters=parameters)
    if stage.trains:
        result = _train(job, network, tokenizer, labels).model_copy(update={"parameters": parameters})
    conversions = [compression for compression in stage.compression if compression.replaces_weights]
    exported = job.out / SCRATCH / "exported" if conversions else job.out
    _export(network, tokenizer, stage.budget.length, exported)
    for conversion in conversions:
        conversion.convert(exported, job.out)
    return result


def _train(job: Job, network: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, labels: list[str]) -> Result:
    import pytorch_lightning as lightning
    import torch
    from pytorch_lightning.callbacks import EarlyStopping, ModelCheckpoint
    from torch.utils.data import DataLoader

    from pipelines.training.resume import ResumePoint

    stage, scratch = job.stage, job.out / SCRATCH
    batches: PlainBatches | TextBatches
    validation: list[dict[str, Any]] = []
    every: int | None = None
    if stage.kind.reads_plain_text:
        batches = _plain_batches(job, tokenizer)
        tokens = batches.tokens_per_batch
    else:
        texts, targets = _training_texts(job, labels)
        encoded = EncodedTexts(texts, targets, tokenizer, stage.budget.length)
        assert stage.budget.epochs is not None
        per_epoch = math.ceil(len(encoded) / stage.budget.batch_texts)
        steps = max(1, round(stage.budget.epochs * per_epoch))
        batches = TextBatches(encoded, size=stage.budget.batch_texts, steps=steps, seed=job.seed)
        tokens = round(sum(len(row) for row in encoded.rows) / per_epoch)
        held_out, answers = _labelled(job, "validation", labels)
        validation = EncodedTexts(held_out, answers, tokenizer, stage.budget.length).in_order_of_length(64)
        every = min(steps, per_epoch)
    log = MetricsLog(job.out / METRICS, job.runtime.log_every, tokens)
    companions: dict[str, PreTrainedModel] = {}
    for objective in stage.objective:
        companions |= objective.companions(
            lambda _: open_for_inference(stage, _teacher(job), labels, job.runtime.accelerator)
        )
    set_dropout(network, stage.dropout)
    module = StageModule(stage, network, companions, batches, log)

    resume = scratch / LAST
    if not resume.exists():
        # an attempt that ended before its first checkpoint counts for nothing
        (job.out / METRICS).unlink(missing_ok=True)
        (scratch / BEST).unlink(missing_ok=True)
    callbacks: list[lightning.Callback] = []
    best: ModelCheckpoint | None = None
    if validation:
        best = ModelCheckpoint(
            scratch,
            filename="best",
            monitor=MONITOR,
            mode="max",
            save_weights_only=True,
            enable_version_counter=False,
        )
        callbacks.append(best)
        if stage.budget.patience is not None:
            callbacks.append(EarlyStopping(MONITOR, mode="max", patience=stage.budget.patience))
    callbacks.append(ResumePoint(resume, job.runtime.checkpoint_every, every))
    with _quiet():
        trainer = lightning.Trainer(
            accelerator=job.runtime.accelerator,
            devices=1,
            precision=stage.optimizer.precision,  # type: ignore[arg-type]  # `auto` was resolved when planning
            max_epochs=1,
            max_steps=len(batches),
            val_check_interval=every,
            num_sanity_val_steps=0,
            logger=False,
            callbacks=callbacks,
            enable_progress_bar=False,
            enable_model_summary=False,
            default_root_dir=scratch,
        )
        # a generator of its own: a loader draws a number each time it is walked through, and training's own random
        # numbers must not depend on whether a validation lies between a checkpoint and the next step
        held_out_batches = DataLoader(cast("Dataset[Any]", validation), batch_size=None, generator=torch.Generator())
        trainer.fit(
            module,
            batches,
            held_out_batches if validation else None,
            ckpt_path=str(resume) if resume.exists() else None,
            weights_only=True,
        )
    if best is not None and (scratch / BEST).exists():
        module.load_state_dict(torch.load(scratch / BEST, weights_only=True)["state_dict"])
    metrics: dict[str, Any] = dict(log.last)
    if best is not None and best.best_model_score is not None:
        metrics[MONITOR] = round(float(best.best_model_score), 6)
    return Result(
        metrics=metrics,
        tokens=trainer.global_step * tokens,
        steps=trainer.global_step,
        resumed_from_step=batches.start or None,
    )


def _plain_batches(job: Job, tokenizer: PreTrainedTokenizerFast) -> PlainBatches:
    stage, budget = job.stage, job.stage.budget
    documents = [text for name in stage.corpus for text in _column(job.tables[name], "text")]
    if not documents:
        raise DataError(f"{', '.join(str(job.tables[name]) for name in stage.corpus)}: no documents to train on")
    rows = max(1, budget.batch_tokens // budget.length)
    stream = TokenStream.encode(documents, tokenizer, budget.tokens, job.seed)
    wanted = budget.tokens if budget.tokens is not None else round((budget.epochs or 1) * len(stream.tokens))
    steps = max(1, wanted // (rows * budget.length))
    return PlainBatches(
        stream, tokenizer, stage.corruption, rows=rows, length=budget.length, steps=steps, seed=job.seed
    )


def _training_texts(job: Job, labels: list[str]) -> tuple[list[str], list[int] | None]:
    """Labelled training texts; or, where a teacher labels them, also the task's unlabelled ones."""
    texts, targets = _labelled(job, "train", labels)
    if "task_text" not in job.stage.corpus:
        return texts, targets
    return [*texts, *_column(job.tables["task_text"], "text")], None


def _labelled(job: Job, table: str, labels: list[str]) -> tuple[list[str], list[int]]:
    index = {label: position for position, label in enumerate(labels)}
    return _column(job.tables[table], "text"), [index[label] for label in _column(job.tables[table], "label")]


def _labels(job: Job) -> list[str]:
    return [] if job.stage.kind.reads_plain_text else sorted(set(_column(job.tables["train"], "label")))


def _column(path: Path, name: str) -> list[str]:
    import pyarrow.parquet as parquet

    values: list[str] = parquet.read_table(path, columns=[name])[name].to_pylist()
    return values


def _tokenizer(job: Job) -> PreTrainedTokenizerFast:
    if job.start is not None:
        return open_tokenizer(job.start)
    assert job.stage.tokenizer is not None
    documents = [text for name in job.stage.corpus for text in _column(job.tables[name], "text")]
    return job.stage.tokenizer.train(_sample(documents, job))


def _sample(documents: list[str], job: Job) -> Iterator[str]:
    """Documents in a random order fixed by the seed, until the tokenizer has seen enough."""
    import numpy as np

    left: float = getattr(job.stage.tokenizer, "sample_bytes", math.inf)
    for index in np.random.default_rng([job.seed, 5]).permutation(len(documents)):
        if left <= 0:
            return
        yield documents[index]
        left -= len(documents[index].encode())


def _teacher(job: Job) -> Path:
    if job.teacher is None:
        raise RecipeError(f"stage {job.stage_name}: an objective asks for a teacher and the stage names none")
    return job.teacher


def _export(network: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, length: int, out: Path) -> None:
    """Write a Hugging Face folder. Weights are safetensors; the tokenizer cuts at the length that was trained on."""
    from transformers.utils import logging as transformers_logging

    transformers_logging.disable_progress_bar()
    network.eval()
    network.config._attn_implementation = None
    tokenizer.model_max_length = length
    network.save_pretrained(out)
    tokenizer.save_pretrained(out)


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence what Lightning says about choices that were made on purpose; our own log tells the user what happens."""
    for name in ("pytorch_lightning", "lightning_fabric", "pytorch_lightning.utilities.rank_zero"):
        logging.getLogger(name).setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=UserWarning, module="pytorch_lightning")
        yield
