"""What the recipes are made of, each stage as one tiny step from random weights on real text."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pyarrow.parquet as parquet
import pytorch_lightning as lightning
import torch
from safetensors.torch import load_file
from torch import Tensor

from pipelines.components import Component
from pipelines.lineage.results import COMPILED, METRICS, SCRATCH, Result
from pipelines.models.opening import open_tokenizer
from pipelines.recipe.catalogue import PARTS
from pipelines.recipe.job import Job
from pipelines.recipe.lines import line_views
from pipelines.recipe.model_annotations import read_models
from pipelines.recipe.profiles import smoke
from pipelines.recipe.schema import Recipe, Stage
from pipelines.recipe.starts import Untrained
from pipelines.recipe.tables import PLAIN
from pipelines.task_families import Task, TaskFamily
from pipelines.task_families.labelled_tables import MAIN
from pipelines.training.assembly.assemble import assemble
from pipelines.training.loop.calibration import StageCalibration
from pipelines.training.metrics_log import read_metrics
from pipelines.training.ranks.run import run
from tests.shared_folders import share_compiled, shared_folder
from tests.small_tasks import write_family
from tests.steps import SHIPPED, shipped

Part = tuple[str, str]
"""Package of a family, and name of a member."""


@cache
def recipes() -> dict[str, Recipe]:
    """Every recipe, on its smoke profile."""
    return {name: smoke(shipped(name)) for name in SHIPPED.names()}


@cache
def stages() -> dict[str, Stage]:
    """`recipe/stage` → stage, of all recipes; without those that read, or judge what reads, tasks or corpora of one
    dataset."""
    everywhere = {
        f"{name}/{stage}": value
        for name, recipe in recipes().items()
        for stage, value in recipe.stages.items()
        if {word for view in line_views(value).values() for word in view.corpus} <= {*PLAIN, MAIN}
    }
    return {
        name: stage
        for name, stage in everywhere.items()
        if {*(subjects_of(name, stage) if stage.kind.judges else ()), *read_by(name, stage)} <= everywhere.keys()
    }


def read_by(name: str, stage: Stage) -> tuple[str, ...]:
    """`recipe/stage` of the networks that the stage `name` reads as features."""
    return tuple(of_recipe(one.from_, name) for one in stage.features)


def subjects_of(name: str, stage: Stage) -> tuple[str, ...]:
    """`recipe/stage` of what the stage `name` starts from."""
    starts = stage.start if isinstance(stage.start, tuple) else (stage.start,)
    return tuple(one if "/" in one else f"{name.partition('/')[0]}/{one}" for one in starts if isinstance(one, str))


def parts_of(stage: Stage) -> set[Part]:
    """The parts that mean something to a stage."""
    idle = {"layout"} if not stage.kind.reads_plain_text else set()
    idle |= set() if stage.trains else {"layout", "schedule", "strategy", "optimizer"}
    idle |= {"head"} if stage.estimate is not None else set()  # what is counted needs no signals
    found: set[Part] = set()
    for key in set(PARTS) - idle:
        value = getattr(stage, key)
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, Component):
                found.add((type(part).family().__module__.rpartition(".")[2], part.name))
    return found


@cache
def where_used() -> dict[Part, str]:
    """Part → the first stage of a recipe with it; one that trains, and reads no networks, if there is one."""
    found: dict[Part, str] = {}
    for name, stage in sorted(stages().items(), key=lambda item: (not item[1].trains, bool(item[1].features))):
        for part in sorted(parts_of(stage)):
            found.setdefault(part, name)
    return found


def stages_that_try(parts: set[Part]) -> dict[Part, str]:
    """A stage for each part, few in all: each next one is that with most of what is left."""
    left, chosen = set(parts), dict[Part, str]()
    trying = {name: parts_of(stage) for name, stage in stages().items() if not stage.kind.judges}
    while left:
        best = max(trying, key=lambda name: len(trying[name] & left))
        assert trying[best] & left, f"no recipe uses {sorted(left)}"
        chosen |= dict.fromkeys(trying[best] & left, best)
        left -= trying[best]
    return chosen


def family_of(stage: Stage) -> str:
    """The kind of task that a stage is tried on: the usual one where its head reads it."""
    reads = stage.head.reads if stage.head is not None else frozenset()
    return TaskFamily.default_name if not reads or TaskFamily.default_name in reads else min(reads)


def language_of(stage: Stage) -> str:
    """A language in which the stage's segmentation finds words."""
    found = stage.segmentation.languages if stage.segmentation is not None else None
    return min(found) if found else "en"


@cache
def tables(family: str, language: str = "en") -> dict[str, Path]:
    """Small tables of a family."""
    return write_family(shared_folder("trials"), family, language)


@dataclass(frozen=True)
class Tried:
    """A stage after its one step."""

    stage: Stage
    folder: Path
    result: Result
    loss: float
    moved: frozenset[str]
    """Names of the weights that the step changed."""
    weights: dict[str, Tensor]


@cache
def tried(name: str, objective: str | None = None) -> Tried:
    """One optimizer step of the stage `name`, without weight decay, for `objective` alone where it is given.

    A stage with a teacher starts from it, or from its vocabulary alone where it has no start of its own; it, and the
    networks that the stage reads, were made by one step too.
    """
    stage = stages()[name]
    if objective is not None:
        stage = stage.model_copy(update={"objective": tuple(one for one in stage.objective if one.name == objective)})
    teacher = None
    if stage.teacher is not None:
        teacher = tried(of_recipe(stage.teacher, name)).folder
        if stage.start is None:
            stage = stage.model_copy(update={"start": Untrained(untrained=stage.teacher), "tokenizer": None})
    length = stage.budget.length
    budget: dict[str, float | None] = {"batch_tokens": 32 * length, "batch_texts": 8, "patience": None}
    budget |= {"tokens": 32 * length} if stage.kind.reads_plain_text else {"epochs": 1e-6}
    stage = stage.model_copy(
        update={
            "budget": stage.budget.model_copy(update=budget),
            "optimizer": stage.optimizer.model_copy(update={"weight_decay": 0.0, "precision": "32-true"}),
        }
    )
    job = job_for(stage, name, teacher)
    result = run(job)
    if not (job.out / "model.safetensors").exists():
        return Tried(stage, job.out, result, 0.0, frozenset(), {})
    after = load_file(job.out / "model.safetensors")
    before = start_of(job)
    moved = frozenset(key for key, value in after.items() if not torch.equal(value, before[key]))
    lines = read_metrics(job.out / METRICS) if stage.trains else []
    losses = [line["train/loss"] for line in lines if "train/loss" in line]
    return Tried(stage, job.out, result, float(losses[-1]) if losses else 0.0, moved, after)


def job_for(stage: Stage, name: str, teacher: Path | None = None, answering: Stage | None = None) -> Job:
    """The job of a stage that starts from its teacher; from nothing, where it has none or its recipe says so.

    `answering` is the stage whose models a judging stage judges: its task is theirs.
    """
    out = shared_folder("trial")
    read = [of_recipe(one.from_, name) for one in stage.features]
    models = {role: tried(of_recipe(one.from_, name)).folder for role, _, one in read_models(stage)}
    share_compiled(out / SCRATCH / COMPILED)
    family, language = family_of(answering or stage), language_of(answering or stage)
    return Job(
        fingerprint="0" * 64,
        recipe=name.partition("/")[0],
        stage_name=name.partition("/")[2],
        stage=stage,
        seed=0,
        language=language,
        family=TaskFamily.model_validate(family),
        start=None if stage.start is None else teacher,
        teachers={} if teacher is None else {"": teacher},
        features=tuple(tried(one).folder for one in read),
        annotation_models=models,
        tables=tables(family, language),
        out=out,
    )


def of_recipe(reference: str, name: str) -> str:
    """The stage that `reference` in the stage `name` means, with its recipe."""
    return reference if "/" in reference else f"{name.partition('/')[0]}/{reference}"


def start_of(job: Job) -> dict[str, Tensor]:
    """The weights from which the stage of `job` began."""
    tasks: dict[str, Task | None] = {}
    for name, view in line_views(job.stage).items():
        plain = view.kind.reads_plain_text
        rows = [] if plain else parquet.read_table(job.tables["train"]).to_pylist()
        tasks[name] = None if plain else Task(job.family, tuple(job.family.labels(rows)))
    tokenizer = open_tokenizer(job.out)
    calibration = StageCalibration(job, tasks, tokenizer) if job.stage.compression else None
    lightning.seed_everything(job.seed, verbose=False)
    network = assemble(job.stage, job.start, tokenizer, tasks, "cpu", job.features, calibration)
    return dict(network.state_dict())
