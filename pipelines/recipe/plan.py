"""Plan a recipe: ordered steps with fingerprints. Nothing is computed, torch is not imported.

A step is one model: a stage under one seed. Its fingerprint covers the resolved stage, the seed, its parents'
fingerprints, the digests of the tables it reads, the code of its parts, and the libraries' minor versions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pipelines.components import did_you_mean
from pipelines.errors import RecipeError
from pipelines.lineage import hardware
from pipelines.lineage.fingerprint import digest_folder, fingerprint, library_versions
from pipelines.lineage.provenance import DataSource
from pipelines.parts import accelerators
from pipelines.recipe.checkpoint import resolve_checkpoint
from pipelines.recipe.features import feature_role
from pipelines.recipe.kinds import Kind
from pipelines.recipe.lines import line_views, teacher_role
from pipelines.recipe.load import Library
from pipelines.recipe.model_annotations import read_models
from pipelines.recipe.schema import Recipe, Stage
from pipelines.recipe.stage_parts import code_of, computing_modules, files_of
from pipelines.recipe.starts import HEAD_START, Checkpoint, Untrained
from pipelines.recipe.tables import (
    answered_tasks,
    judged_tables,
    judged_tasks,
    learned_tables,
    named_families,
    probed_tables,
)
from pipelines.task_families import TaskFamily
from pipelines.task_families.labelled_tables import MAIN, tasks_in

UNIDENTIFYING: Any = {
    **dict.fromkeys(("like", "seeds", "start", "head_start", "teacher", "limits"), True),
    "annotations": {"__all__": {"from_"}},
    "augmentation": {"__all__": {"attack": {"from_"}}},
    "lines": {"__all__": {"teacher": True, "annotations": {"__all__": {"from_"}}}},
    "features": {"__all__": {"from_"}},
}
"""Keys of a stage outside its identity: paths of checkpoints, names of parents and limits do not change the result."""


@dataclass(frozen=True)
class Step:
    """One model to train, or to take from the store: a stage with a seed and data."""

    recipe: str
    name: str
    """Name of the stage in its recipe."""
    seed: int
    stage: Stage
    several: bool
    """Whether the stage has more than one seed."""
    parents: Mapping[str, str]
    """Role → fingerprint; roles are start, head_start, teacher, features, features:<n>, annotations:<n> and
    subject:<stage>@<seed>."""
    data: Mapping[str, DataSource]
    family: TaskFamily
    """Family of the task that it answers: of the named task that it reads, if it reads just that; else of the main
    one."""
    families: Mapping[str, TaskFamily]
    """Named task that it reads → its family."""
    judged: Mapping[str, tuple[str, ...]]
    """Role of each judged model → the tasks that it answers; empty for a stage that judges nothing."""
    checkpoint: Path | None
    """Folder of the external checkpoint that this step starts from."""
    identity: Mapping[str, Any]
    """Everything that the result depends on; the fingerprint is its hash."""
    fingerprint: str
    language: str | None = None
    """Language of its tables where they are of another dataset than that of the plan."""

    @property
    def label(self) -> str:
        """`general`, or `classify@1` where the stage has several seeds."""
        return f"{self.name}@{self.seed}" if self.several else self.name


@dataclass(frozen=True)
class JudgedData:
    """The dataset on which models are judged that are trained on another one."""

    data: Mapping[str, DataSource]
    language: str


@dataclass(frozen=True)
class Plan:
    """Steps of a recipe, parents before children."""

    recipe: Recipe
    steps: tuple[Step, ...]

    def name(self, step: Step) -> str:
        """Label of a step, preceded by its recipe's name unless that is the recipe of this plan."""
        return step.label if step.recipe == self.recipe.name else f"{step.recipe}/{step.label}"

    def ancestors(self, stage: str) -> Plan:
        """Plan of `stage` and its ancestors only. Raises RecipeError for an unknown stage."""
        needed = {step.fingerprint for step in self.steps if step.name == stage and step.recipe == self.recipe.name}
        if not needed:
            raise RecipeError(
                f"recipe {self.recipe.name} has no stage {stage!r}.{did_you_mean(stage, self.recipe.stages)}"
            )
        for step in reversed(self.steps):
            if step.fingerprint in needed:
                needed |= set(step.parents.values())
        return Plan(self.recipe, tuple(step for step in self.steps if step.fingerprint in needed))

    def missing(self, stored: Iterable[str]) -> list[Step]:
        """Steps that must be computed given the fingerprints in the store, parents first.

        Missing ancestors of stored steps are included: pruning keeps lineages complete, so an incomplete one is
        damaged.
        """
        available = set(stored)
        return [step for step in self.steps if step.fingerprint not in available]


def plan(
    recipe: Recipe,
    library: Library,
    data: Mapping[str, DataSource],
    family: TaskFamily | None = None,
    profile: Callable[[Recipe], Recipe] = lambda recipe: recipe,
    families: Mapping[str, TaskFamily] | None = None,
    judged_on: JudgedData | None = None,
    given: Mapping[str, Step] | None = None,
) -> Plan:
    """Plan `recipe` over the tables `data`, whose main task is of `family`, and whose named tasks are of `families`;
    stages that judge models read those of `judged_on` instead, if it is given.

    `profile` is the transformation that was already applied to `recipe`; it is applied here to the other recipes that
    its stages start from. `given` are the finished steps that stages of `recipe` are. Raises RecipeError for a missing
    checkpoint, and for a corpus or task that the dataset does not have; DataError never: tables were validated before.
    """
    planner = _Planner(recipe, library, data, family or TaskFamily.default(), profile, families or {}, judged_on)
    planner.done |= {(recipe.name, name): [step] for name, step in (given or {}).items()}
    return planner.plan()


class _Planner:
    def __init__(
        self,
        recipe: Recipe,
        library: Library,
        data: Mapping[str, DataSource],
        family: TaskFamily,
        profile: Callable[[Recipe], Recipe],
        families: Mapping[str, TaskFamily],
        judged_on: JudgedData | None,
    ) -> None:
        self.recipe, self.library, self.data, self.family, self.profile = recipe, library, data, family, profile
        self.families, self.judged_on = families, judged_on
        self.done: dict[tuple[str, str], list[Step]] = {}
        self.recipes = {recipe.name: recipe}

    def plan(self) -> Plan:
        for name in self.recipe.stages:
            self._steps(self.recipe.name, name)
        return Plan(self.recipe, tuple(step for steps in self.done.values() for step in steps))

    def _steps(self, recipe: str, name: str) -> list[Step]:
        key = (recipe, name)
        if key not in self.done:
            if recipe not in self.recipes:
                self.recipes[recipe] = self.profile(self.library.load(recipe))
            stage = self.recipes[recipe].stages[name]
            parents = self._parents(recipe, stage)
            # a claim states the seeds of what it compares, of other recipes too
            compared = self.recipe.others.get(f"{recipe}/{name}", stage)
            # a seed that nothing is drawn with changes nothing
            seeds = compared.seeds if stage.draws else stage.seeds[:1]
            self.done[key] = [self._step(recipe, name, stage, seed, len(seeds) > 1, parents) for seed in seeds]
        return self.done[key]

    def _parents(self, recipe: str, stage: Stage) -> dict[str, str]:
        def first(reference: str) -> str:
            owner, _, name = reference.rpartition("/")
            return self._steps(owner or recipe, name)[0].fingerprint

        if stage.kind.judges:
            subjects = [stage.start] if isinstance(stage.start, str) else stage.start
            assert isinstance(subjects, (list, tuple))
            roles = {}
            for reference in subjects:
                owner, _, name = reference.rpartition("/")
                for step in self._steps(owner or recipe, name):
                    roles[f"subject:{reference}@{step.seed}"] = step.fingerprint
            return roles
        roles = {}
        if isinstance(stage.start, str):
            roles["start"] = first(stage.start)
        elif isinstance(stage.start, Untrained):
            roles["start"] = first(stage.start.untrained)
        if stage.head_start is not None:
            roles[HEAD_START] = first(stage.head_start)
        for line, view in line_views(stage).items():
            if view.teacher is not None:
                roles[teacher_role(line if stage.lines else "")] = first(view.teacher)
        for number, source in enumerate(stage.features):
            roles[feature_role(number)] = first(source.from_)
        for role, _, annotation in read_models(stage):
            roles[role] = first(annotation.from_)
        return roles

    def _step(self, recipe: str, name: str, stage: Stage, seed: int, several: bool, parents: dict[str, str]) -> Step:
        if stage.optimizer.precision == "auto":
            chosen = stage.optimizer.model_copy(update={"precision": hardware.precision()})
            stage = stage.model_copy(update={"optimizer": chosen})
        words = [word for view in line_views(stage).values() for word in view.corpus]
        tables = [table for word in words for table in learned_tables(word, self.families)]
        judged: dict[str, tuple[str, ...]] = {}
        if stage.kind.judges:
            steps = {step.fingerprint: step for some in self.done.values() for step in some}
            judged = {
                role: judged_tasks(stage.corpus, answered_tasks(parent, steps)) for role, parent in parents.items()
            }
        if stage.kind is Kind.EVALUATE:
            tables = list(judged_tables(dict.fromkeys(task for tasks in judged.values() for task in tasks)))
        if stage.kind is Kind.PROBE:
            tables = probed_tables(stage.corpus, self.families, (table for one in stage.probes for table in one.tables))
        elsewhere = self.judged_on if stage.kind.judges else None
        available = self.data if elsewhere is None else elsewhere.data
        data = {table: self._source(available, table, recipe, name) for table in dict.fromkeys(tables)}
        checkpoint = resolve_checkpoint(stage.start.checkpoint) if isinstance(stage.start, Checkpoint) else None
        named = named_families(data, self.families)
        step = identify_step(recipe, name, stage, seed, several, parents, data, self.family, checkpoint, named, judged)
        return step if elsewhere is None else replace(step, language=elsewhere.language)

    @staticmethod
    def _source(available: Mapping[str, DataSource], table: str, recipe: str, stage: str) -> DataSource:
        """The table of this name. Raises RecipeError when the dataset has none."""
        if table not in available:
            raise RecipeError(
                f"recipe {recipe}: stages.{stage}.corpus: the dataset has no table {table!r}."
                f"{did_you_mean(table, available)}"
            )
        return available[table]


def identify_step(
    recipe: str,
    name: str,
    stage: Stage,
    seed: int,
    several: bool,
    parents: Mapping[str, str],
    data: Mapping[str, DataSource],
    family: TaskFamily,
    checkpoint: Path | None,
    families: Mapping[str, TaskFamily] | None = None,
    judged: Mapping[str, tuple[str, ...]] | None = None,
) -> Step:
    """Build a step with its identity, from the current code and library versions; `stage` must be resolved.

    `family` is that of the main task, `families` are those of the named tasks among `data`.
    """
    tasks, families = tasks_in(data), families or {}
    if len(tasks) == 1:
        family = families.get(tasks[0], family)
    # the result of a plain-text stage does not depend on the task family
    answered = [families.get(task, family) for task in tasks or [MAIN]] if not stage.kind.reads_plain_text else []
    modules = sorted({type(one).__module__ for one in answered})
    identity: dict[str, Any] = {
        "stage": stage.model_dump(mode="json", exclude=UNIDENTIFYING),
        "untrained": isinstance(stage.start, Untrained),
        "seed": seed,
        "family": family.model_dump(mode="json") if modules else None,
        "parents": parents,
        "data": {table: source.digest for table, source in data.items()},
        "code": code_of(tuple(sorted({*computing_modules(stage), *modules}))),
        "libraries": library_versions(),
        "checkpoint": digest_folder(checkpoint) if checkpoint else None,
    }
    if len(tasks) > 1:
        identity["families"] = {name: one.model_dump(mode="json") for name, one in families.items()}
    if stage.kind is Kind.EVALUATE:
        identity["subjects"] = sorted(parents)
    if stage.kind is Kind.PROBE:  # it compares neighbouring subjects, so that their order changes the result
        identity["subjects"] = list(parents)
    if stage.trains:
        identity["accelerators"] = accelerators.versions()
    if files := files_of(stage):
        identity["files"] = files
    key = fingerprint(identity)
    return Step(
        recipe, name, seed, stage, several, parents, data, family, families, judged or {}, checkpoint, identity, key
    )
