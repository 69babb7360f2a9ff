"""Compute a training stage: tokenizer ▸ batches ▸ network ▸ Lightning ▸ Hugging Face folder."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from pipelines.errors import RecipeError
from pipelines.lineage.results import CHECKPOINTS, COMPILED, METRICS, SCRATCH, Result
from pipelines.models.classifier import load_classifier
from pipelines.models.features import save_feature_tokenizers
from pipelines.models.opening import count_weights, line_network
from pipelines.parts.accelerators import Accelerator, installed_accelerators
from pipelines.parts.distributions import Distribution
from pipelines.parts.heads import FeatureTokenizer
from pipelines.parts.objectives import Companion
from pipelines.recipe.lines import line_views
from pipelines.task_families import Task
from pipelines.training.assembly.annotation_models import save_annotation_models, with_annotation_models
from pipelines.training.assembly.assemble import assemble, set_dropout
from pipelines.training.assembly.companions import CompanionFactory, save_companions
from pipelines.training.assembly.export import export, final_network
from pipelines.training.assembly.features import feature_tokenizers_of, mixed_layers
from pipelines.training.assembly.fertility import check_tokenizer
from pipelines.training.assembly.objective_modules import build_modules, save_modules
from pipelines.training.assembly.teacher_vocabulary import shared_tokens_of
from pipelines.training.batches.micro_batches import MicroBatches, partition_for
from pipelines.training.checkpoints.folder import Checkpoints
from pipelines.training.loop.calibration import StageCalibration
from pipelines.training.loop.inputs import batches_of, tables_of, tasks_of, tokenizer_of, validation_of
from pipelines.training.loop.module import StageModule
from pipelines.training.loop.stopping import StopRequest
from pipelines.training.loop.trained_line import TrainedLine
from pipelines.training.loop.whole_scores import whole_scores
from pipelines.training.metrics_log import MetricsLog
from pipelines.training.ranks import process_group
from pipelines.vocabulary import Ability, Signal

if TYPE_CHECKING:
    from torch import nn
    from torch.utils.data import Dataset
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

    from pipelines.recipe.job import Job
    from pipelines.recipe.schema import Stage
    from pipelines.training.assembly.shared_tokens import SharedTokens
    from pipelines.training.checkpoints.best_weights import BestWeights


def fit(job: Job) -> Result:
    """Compute a training stage and write its model folder into `job.out`.

    Continues from the checkpoint that an interrupted run left in `job.out`; the weights are then those of an
    uninterrupted run. Raises DataError or RecipeError for problems that only the data or the weights reveal.
    """
    import pytorch_lightning as lightning

    job = with_annotation_models(job)
    stage = job.stage
    tokenizer = tokenizer_of(job)
    shared_tokens = shared_tokens_of(job, tokenizer)
    tasks = tasks_of(job)
    lightning.seed_everything(job.seed, verbose=False)
    measured = check_tokenizer(stage, job.stage_name, tables_of(job), tokenizer, job.language) if stage.trains else {}
    calibration = StageCalibration(job, tasks, tokenizer) if stage.compression else None
    accelerator, head = job.runtime.accelerator, job.head_start
    network = assemble(stage, job.start, tokenizer, tasks, accelerator, job.features, calibration, head)
    features = feature_tokenizers_of(job, network.config)
    parameters = count_weights(network)
    result, companions, accelerators = Result(), dict[str, dict[str, Companion]](), list[Accelerator]()
    modules: dict[str, dict[str, nn.Module]] = {}
    if stage.trains:
        companions = _companions(job, network, shared_tokens)
        others = [one for line in companions.values() for one in line.values()]
        modules = build_modules(job, network, companions)
        for trained in (network, *(one.network for one in others if one.trains)):
            set_dropout(trained, stage.dropout)
        if any(_within_documents(view) for view in line_views(stage).values()):
            from pipelines.networks.document_attention import attend_within_documents

            for one in (network, *(companion.network for companion in others)):
                attend_within_documents(one)
        accelerators = _accelerate([network, *(one.network for one in others)], job)
        result, network = _train(job, network, companions, modules, tokenizer, features, tasks, accelerators)
    if process_group.rank() > 0:
        return result  # only rank 0 writes
    conversions = [compression for compression in stage.compression if compression.replaces_weights]
    exported = job.out / SCRATCH / "exported" if conversions else job.out
    export(network, tokenizer, stage.budget.length, exported)
    save_feature_tokenizers(features, exported)
    save_annotation_models(stage, job.out)
    for line, made in companions.items():
        save_companions(made, exported, line)
        save_modules(modules[line], exported, line)
    for conversion in conversions:
        conversion.convert(exported, load_classifier(exported), job.out, calibration)
    metrics = {**result.metrics, **measured, **mixed_layers(network)}
    return result.model_copy(update={"parameters": parameters, "metrics": metrics, "compiled": bool(accelerators)})


def _companions(
    job: Job, network: PreTrainedModel, shared_tokens: Mapping[str, SharedTokens]
) -> dict[str, dict[str, Companion]]:
    """Line → its companions by name."""
    made = {}
    for line, view in line_views(job.stage).items():
        factory = CompanionFactory(job, line_network(network, line), line, shared_tokens.get(line))
        made[line] = {name: one for objective in view.objective for name, one in objective.companions(factory).items()}
    return made


def _within_documents(view: Stage) -> bool:
    return view.kind.reads_plain_text and Ability.WITHIN_DOCUMENTS in view.layout.needs_abilities


def _accelerate(networks: Sequence[PreTrainedModel], job: Job) -> list[Accelerator]:
    """Apply all accelerators that support the device to `networks`; returns those that could be applied."""
    folder = (job.cache or job.out / SCRATCH) / COMPILED

    def apply() -> list[Accelerator]:
        supported = [one for one in installed_accelerators() if one.applies(job.runtime.accelerator)]
        return [one for one in supported if one.accelerate(networks, folder)]

    return process_group.rank_zero_first(apply)


def _train(
    job: Job,
    network: PreTrainedModel,
    companions: Mapping[str, dict[str, Companion]],
    modules: Mapping[str, dict[str, nn.Module]],
    tokenizer: PreTrainedTokenizerFast,
    features: Sequence[FeatureTokenizer],
    tasks: Mapping[str, Task | None],
    accelerators: Sequence[Accelerator],
) -> tuple[Result, PreTrainedModel]:
    import pytorch_lightning as lightning
    import torch
    from lightning_fabric.plugins.environments.lightning import LightningEnvironment
    from lightning_fabric.plugins.environments.torchelastic import TorchElasticEnvironment
    from pytorch_lightning.callbacks import EarlyStopping
    from torch.utils.data import DataLoader

    from pipelines.training.checkpoints.best_weights import BestWeights
    from pipelines.training.checkpoints.local_files import LocalCheckpointIO
    from pipelines.training.loop.constraints import Constraints, complete_after, constraining_changes
    from pipelines.training.loop.no_op_profiler import NoOpProfiler
    from pipelines.training.loop.resume import ResumePoint

    stage, scratch = job.stage, job.out / SCRATCH
    batches = batches_of(job, tasks, tokenizer, features)
    validation, every = validation_of(job, tasks, tokenizer, features), None
    if validation is not None:
        every = min(len(batches), batches.steps_per_epoch)
    lines = [
        TrainedLine(
            name,
            view,
            line_network(network, name),
            companions[name],
            one,
            1.0 if name == "" else stage.lines[name].weight,
            modules[name],
        )
        for (name, view), one in zip(line_views(stage).items(), batches.lines, strict=True)
    ]
    tokens = batches.tokens_per_batch
    partition = partition_for(
        [objective for line in lines for objective in line.objectives],
        rank=process_group.rank(),
        ranks=process_group.world_size(),
        corruption_shards=batches.corruption_shards,
        tokens=batches.largest_batch,
        device_tokens=job.runtime.device_tokens,
    )
    distributed = partition.ranks > 1
    distribution = job.runtime.distribution if distributed else Distribution.default()
    if distribution.shards_weights and any(line.trained_modules for line in lines):
        raise RecipeError(
            f"training.distribution: {distribution.name} shards a single network, but stage {job.stage_name} trains a "
            "companion, or parameters of an objective, as well; use ddp"
        )
    if distribution.shards_weights and any(Signal.ATTENTION_SCORES in line.needed_signals for line in lines):
        raise RecipeError(
            f"training.distribution: {distribution.name} shards the projections from which the objectives of stage "
            f"{job.stage_name} compute scores of attention; use ddp"
        )
    changes = constraining_changes(network)
    if distribution.shards_weights and changes:
        raise RecipeError(
            f"training.distribution: {distribution.name} shards the weights of stage {job.stage_name}, which "
            f"{changes[0].compression.name} compares with each other after every step; use ddp"
        )
    log = MetricsLog(job.out / METRICS, job.runtime.log_every, tokens)
    stop = StopRequest()
    module = StageModule(stage, network, lines, batches, partition, distribution, validation, log, stop, accelerators)

    checkpoints = Checkpoints(scratch / CHECKPOINTS, log)
    resume = process_group.broadcast_from_first(checkpoints.newest() if process_group.rank() == 0 else None)
    if resume is None and process_group.rank() == 0:
        # the metrics of an attempt that ended before its first checkpoint are discarded
        (job.out / METRICS).unlink(missing_ok=True)
    callbacks: list[lightning.Callback] = [Constraints(network, changes, stage, len(batches))] if changes else []
    best: BestWeights | None = None
    if validation is not None:
        first = complete_after(stage, len(batches))
        best = BestWeights(scratch, network, distribution, validation.monitor, first)
        callbacks.append(best)
        if stage.budget.patience is not None:
            callbacks.append(EarlyStopping(validation.monitor, mode="max", patience=stage.budget.patience))
    callbacks.append(ResumePoint(checkpoints, job.runtime.checkpoint_every, every))
    with _quiet(), stop:
        trainer = lightning.Trainer(
            accelerator=job.runtime.accelerator,
            devices=job.runtime.devices,
            num_nodes=job.runtime.nodes,
            strategy=distribution.strategy(partition.ranks) if distributed else "auto",
            # every launcher sets torchrun's environment variables; a single process must not detect any cluster
            plugins=[TorchElasticEnvironment() if distributed else LightningEnvironment(), LocalCheckpointIO()],
            use_distributed_sampler=False,
            accumulate_grad_batches=partition.accumulated,
            precision=stage.optimizer.precision,  # type: ignore[arg-type]  # `auto` was resolved when planning
            max_epochs=1,
            max_steps=len(batches),
            val_check_interval=every and every * partition.accumulated,
            num_sanity_val_steps=0,
            logger=False,
            profiler=NoOpProfiler(),
            callbacks=callbacks,
            enable_progress_bar=False,
            enable_model_summary=False,
            default_root_dir=scratch,
        )
        held_out = None
        if validation is not None:
            # a separate generator: a loader draws a number for each iteration, and the random numbers of training must
            # not depend on whether a validation lies between a checkpoint and the next step
            in_order = cast("Dataset[Any]", validation)
            held_out = DataLoader(in_order, batch_size=None, generator=torch.Generator())
        trainer.fit(module, MicroBatches(batches, partition, lines), held_out, ckpt_path=resume, weights_only=True)
    network = final_network(network, best, distribution, checkpoints)
    metrics: dict[str, Any] = dict(log.last)
    if module.trained_share < 1:
        metrics["trained_share"] = round(module.trained_share, 6)
    if best is not None and best.score is not None:
        metrics[best.monitor] = round(best.score, 6)
    if process_group.rank() == 0:
        metrics |= whole_scores(job, tasks, network, tokenizer, features)
    result = Result(
        metrics=metrics,
        tokens=trainer.global_step * tokens,
        steps=trainer.global_step,
        resumed_from_step=batches.start or None,
        passed_over=tuple(checkpoints.passed_over),
    )
    return result, network


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence Lightning's warnings about deliberate choices; the log of this package informs the user."""
    for name in ("pytorch_lightning", "lightning_fabric", "pytorch_lightning.utilities.rank_zero"):
        logging.getLogger(name).setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=UserWarning, module="pytorch_lightning|lightning_")
        yield
