"""Every recipe of the house loads and plans, and what it combines anew survives a few steps on real text."""

from __future__ import annotations

import hashlib
import re
from functools import cache
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
from ruamel.yaml import YAML

from pipelines.components import discover
from pipelines.corpora.shards.held_out import HELD_OUT
from pipelines.judging.evaluations import stage as judging
from pipelines.judging.subjects import Subject
from pipelines.lineage.provenance import DataSource
from pipelines.lineage.results import METRICS, PROBES, RESULT
from pipelines.recipe.kinds import Kind
from pipelines.recipe.lines import line_views
from pipelines.recipe.plan import Plan, Step, plan
from pipelines.recipe.problems import Setting
from pipelines.recipe.profiles import smoke
from pipelines.recipe.schema import Recipe, Stage
from pipelines.recipe.tables import PLAIN
from pipelines.task_families import TaskFamily
from pipelines.task_families.labelled_tables import MAIN, PARTS, labelled_table
from pipelines.training.metrics_log import read_metrics
from pipelines.training.ranks.run import run
from tests.pipelines.recipe.smoke_cover import Combination, combinations_of, cover, needed_for, stands_for
from tests.shared_folders import shared_folder
from tests.small_corpora import corpora_of, corpus_table
from tests.small_corpus import documents
from tests.small_tasks import write_family
from tests.steps import RECIPES, SHIPPED, job_of, shipped

NAMES = SHIPPED.names()
FORMS = [
    (name, variant)
    for name in NAMES
    for variant in ("", *(YAML(typ="safe").load(RECIPES / f"{name}.yaml").get("variants") or ()))
]
"""Every recipe as it stands, and under each of its variants."""
MADE: dict[str, Path] = {}
"""Folder of every step made so far, by fingerprint: what two recipes share is trained once."""


def setting_of(recipe: Recipe) -> Setting:
    """A dataset for a recipe: its task is read by all heads, its language is one the segmentation knows."""
    discover(TaskFamily.__module__)
    fits = set(TaskFamily.members)
    tasks: dict[str, set[str]] = {}
    languages = {"en"}
    views = views_of(recipe)
    for stage in views:
        if stage.head is not None and stage.head.reads:
            (word,) = (word for word in stage.corpus if word not in PLAIN)
            able = {name for name in stage.head.reads if stage.head.unfit(TaskFamily.model_validate(name)) is None}
            if word == MAIN:
                fits &= able
            else:
                tasks[word] = tasks.get(word, able) & able
        if stage.suite and set(stage.corpus) & set(tasks):
            continue  # what judges a named task is checked with it
        for evaluation in stage.suite:
            fits &= evaluation.reads or fits
            languages = {one for one in languages if evaluation.unfit(None, one) is None} or {"zh"}
        for probe in stage.probes:
            fits &= probe.reads or fits
        if stage.segmentation is not None and stage.segmentation.languages is not None:
            languages = set(stage.segmentation.languages)
    assert fits, f"{recipe.name}: no dataset has a task that all of its heads read"
    family = _first(fits)
    return Setting(
        family=family,
        language=min(languages),
        corpora=corpora_of([*views, *(view for one in begun_from(recipe) for view in views_of(one))]),
        # of another family where one fits: a head of another task is new
        tasks={word: _first(able - {family} or able) for word, able in tasks.items()},
    )


def views_of(recipe: Recipe) -> list[Stage]:
    return [view for one in recipe.stages.values() for view in line_views(one).values()]


def begun_from(recipe: Recipe) -> list[Recipe]:
    """The recipes whose stages the stages of this one start from."""
    starts = (one.start for one in recipe.stages.values())
    names = {start.rpartition("/")[0] for start in starts if isinstance(start, str)} - {""}
    return [SHIPPED.load(name) for name in sorted(names)]


def _first(fits: set[str]) -> str:
    return TaskFamily.default_name if TaskFamily.default_name in fits else sorted(fits)[0]


def tables_of(setting: Setting) -> dict[str, Path]:
    assert setting.family is not None and setting.language is not None
    tables = dict(main_tables(setting.family, setting.language))
    for task, family in (setting.tasks or {}).items():
        written = main_tables(family, setting.language)
        tables |= {labelled_table(task, part): written[part] for part in PARTS}
    corpora = (setting.corpora or {}).items()
    return tables | {word: corpus_table(tuple(columns.items())) for word, columns in corpora}


@cache
def main_tables(family: str, language: str) -> dict[str, Path]:
    tables = write_family(shared_folder("tables"), family, language)
    held_out = tables["general"].with_name(f"{HELD_OUT}.parquet")
    pyarrow.parquet.write_table(pyarrow.table({"text": documents("tarfile", "ssl", "shutil", "pathlib")}), held_out)
    return {**tables, HELD_OUT: held_out}


@cache
def source_of(table: Path) -> DataSource:
    return DataSource(digest=hashlib.md5(table.read_bytes()).hexdigest(), path=str(table))


@cache
def loaded(name: str, variant: str) -> tuple[Recipe, Setting]:
    """A recipe, checked for a dataset that fits it, and that."""
    variants = [variant] if variant else []
    setting = setting_of(shipped(name, *variants))
    return SHIPPED.load(name, variants, setting=setting), setting


def planned(name: str, variant: str, *, tiny: bool) -> Plan:
    """The plan of a recipe over tables that fit it."""
    recipe, setting = loaded(name, variant)
    sources = {table: source_of(path) for table, path in tables_of(setting).items()}
    family = TaskFamily.model_validate(setting.family)
    profile = smoke if tiny else (lambda whole: whole)
    families = {task: TaskFamily.model_validate(one) for task, one in (setting.tasks or {}).items()}
    return plan(profile(recipe), SHIPPED, sources, family, profile, families)


@pytest.mark.parametrize(("name", "variant"), FORMS)
def test_loads_and_plans(name: str, variant: str) -> None:
    found = planned(name, variant, tiny=False)
    assert {step.name for step in found.steps if step.recipe == name} == set(found.recipe.stages)
    assert len({step.fingerprint for step in found.steps}) == len(found.steps), "two steps would share an artifact"
    done: set[str] = set()
    for step in found.steps:
        assert set(step.parents.values()) <= done, f"{step.label} comes before what it starts from"
        done.add(step.fingerprint)


@cache
def tiny_plans() -> dict[tuple[str, str], Plan]:
    """The plan of every form, on its smoke profile."""
    return {form: planned(*form, tiny=True) for form in FORMS}


@cache
def chosen() -> frozenset[str]:
    """The fingerprints of the steps that are run."""
    plans = list(tiny_plans().values())
    needed = needed_for(plans)
    return cover(needed, {step.fingerprint: combinations_of(step) for plan in plans for step in first_seeds(plan)})


def first_seeds(plan: Plan) -> list[Step]:
    return [step for step in plan.steps if stands_for(plan, step) is step]


def test_the_steps_that_are_run_show_every_combination_and_have_what_they_start_from() -> None:
    every: set[Combination] = set()
    shown: set[Combination] = set()
    for each in tiny_plans().values():
        every = every.union(*(combinations_of(step) for step in each.steps))
        made = [step for step in first_seeds(each) if step.fingerprint in chosen()]
        shown = shown.union(*(combinations_of(step) for step in made))
        by_name = {step.fingerprint: step for step in each.steps}
        for step in made:
            assert {stands_for(each, by_name[parent]).fingerprint for parent in step.parents.values()} <= chosen()
    assert shown == every
    assert {kind for _, _, kind, _ in shown} == set(Kind)


@pytest.mark.long
@pytest.mark.parametrize(("name", "variant"), FORMS)
def test_what_it_combines_anew_survives_the_smoke_profile(
    name: str, variant: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    found = tiny_plans()[name, variant]
    _, setting = loaded(name, variant)
    tables, kinds = tables_of(setting), dict[str, Kind]()
    for step in found.steps:
        kinds[step.fingerprint] = step.stage.kind
        first = stands_for(found, step)
        if first.fingerprint not in chosen():
            continue
        if first is not step:
            MADE[step.fingerprint] = MADE[first.fingerprint]
        if step.fingerprint in MADE:
            continue
        job = job_of(step, MADE, tables, tmp_path_factory.mktemp(step.name))
        subjects = tuple(
            Subject(
                stage=role.removeprefix("subject:").rpartition("@")[0],
                seed=int(role.rpartition("@")[2]),
                fingerprint=parent,
                folder=MADE[parent],
                answers=not kinds[parent].reads_plain_text,
                tasks=step.judged[role],
            )
            for role, parent in step.parents.items()
            if role.startswith("subject:")
        )
        result = run(job.model_copy(update={"subjects": subjects, "language": setting.language}))
        MADE[step.fingerprint] = job.out
        assert (job.out / RESULT).exists()
        if step.stage.kind.judges:
            record = PROBES if step.stage.kind is Kind.PROBE else judging.EVALUATION
            assert result.metrics and (job.out / record).exists()
            continue
        assert (job.out / "config.json").exists() and result.parameters > 0
        if step.stage.trains:
            lines = read_metrics(job.out / METRICS)
            assert lines[-1]["step"] == result.steps > 0
            assert any(name.startswith("train/") for line in lines for name in line)


def test_every_recipe_names_its_paper_and_fits_on_a_screen() -> None:
    for name in NAMES:
        paper = shipped(name).paper
        assert re.match(r"(arXiv|doi):\S+$|[A-Z].+ \d{4}, \w.+, \w", paper), f"{name}: say which system it is"
        assert len((RECIPES / f"{name}.yaml").read_text().splitlines()) <= 120, (
            f"{name}: a recipe is read at one glance"
        )
