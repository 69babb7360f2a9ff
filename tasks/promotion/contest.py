"""The comparison of a candidate with the current champion, and the step that evaluates both on the same examples.

contest = open_contest(root, store, "cursus-classifier", "champion")  # rejects incomparable models before computing
step = judging(contest, prepared, settings)                           # an evaluate stage, in the store like any other
check_predictions(folder, prepared)                                   # both predicted every test example
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pipelines.components import discover
from pipelines.errors import DataError, RecipeError
from pipelines.judging.evaluations import Evaluation
from pipelines.judging.evaluations.stage import PREDICTIONS
from pipelines.judging.gate.evidence import CANDIDATE, CHAMPION
from pipelines.lineage.provenance import DataSource, Provenance
from pipelines.lineage.store import Store
from pipelines.models.opening import CONFIG_KEY
from pipelines.networks.folder import read_json
from pipelines.recipe.final_models import ANSWERING_KINDS
from pipelines.recipe.kinds import Kind
from pipelines.recipe.plan import Step, identify_step
from pipelines.recipe.schema import Stage
from pipelines.recipe.tables import judged_tables
from pipelines.serving.answering.examples import family_of
from pipelines.task_families import TaskFamily
from pipelines.task_families.labelled_tables import MAIN, labelled_table, tasks_in
from tasks.datasets.planning import sources
from tasks.datasets.prepared import Prepared
from tasks.decisions.journal import AliasState
from tasks.models.ancestry import ancestry, label, latest_model, resolve
from tasks.promotion.settings import PromotionSettings
from tasks.tracking.champions import champion_state, former
from tasks.tracking.registry import CANDIDATE as REGISTERED
from tasks.tracking.registry import task_model_name

ALIAS = re.compile(r"[a-z][a-z0-9_-]*")
RECIPE, STAGE = "promotion", "judge"


@dataclass(frozen=True)
class Side:
    """One of the models of a contest."""

    record: Provenance
    folder: Path
    lineage: Mapping[str, Provenance]
    """Records of the model and its ancestors, parents first."""
    train: DataSource
    """The labelled table that it was trained on."""
    task: str
    """The task that it answers, a name that its dataset has for it."""

    @property
    def name(self) -> str:
        return f"{self.record.recipe}/{label(self.record)} ({self.record.fingerprint[:8]})"

    @property
    def dataset(self) -> str:
        return self.train.dataset

    def table(self, part: str) -> str:
        """Name of the table with one part of its task."""
        return labelled_table(self.task, part)

    @property
    def family(self) -> TaskFamily:
        return family_of(self.folder)

    @property
    def labels(self) -> list[str]:
        """The classes or tags of the model, sorted; none for free-text answers."""
        config = read_json(self.folder / "config.json")
        labels = (config.get(CONFIG_KEY) or {}).get("labels")
        return sorted(labels if labels is not None else config.get("id2label", {}).values())


@dataclass(frozen=True)
class Contest:
    """A candidate and the champion that it is compared with, for an alias of a registered model."""

    model: str
    alias: str
    candidate: Side
    champion: Side | None
    alias_state: AliasState
    """The state of the alias when the contest was opened."""


def open_contest(root: Path, store: Store, reference: str | None, alias: str, compare: bool = True) -> Contest:
    """The contest of the model `reference` (None: the final model of the latest run) with the current champion.

    Without `compare` the candidate is evaluated alone. Raises CursusError for an unknown reference, DataError for a
    model without a task and for models that cannot be compared: different tasks, datasets or labels.
    """
    if ALIAS.fullmatch(alias) is None or alias == REGISTERED or alias.startswith(former("")):
        raise RecipeError(
            f"{alias!r} is no alias for a promotion: an alias begins with a letter and consists of lower-case letters, "
            f"digits, _ and -; {REGISTERED} and {former('…')} are reserved for runs and rollbacks"
        )
    fingerprint = latest_model(root) if reference is None else resolve(root, store, reference)[1]
    candidate = _side(store, fingerprint)
    model = task_model_name(candidate.folder)
    state = champion_state(root, store, model, alias)
    champion = None
    if compare and state.champion is not None and state.champion != fingerprint:
        champion = _side(store, state.champion)
        _refuse_incomparable(candidate, champion, alias)
    return Contest(model, alias, candidate, champion, state)


def refuse_other_items(contest: Contest, prepared: Prepared, store: Store) -> None:
    """Raise DataError for a model whose training data may contain some of today's test items."""
    sides = ((contest.candidate, CANDIDATE), (contest.champion, f"current {contest.alias}"))
    other_data = [
        (side, what) for side, what in sides if side and side.train.digest != prepared.digests[side.table("train")]
    ]
    judged_on: dict[str, set[str]] = {}
    for record in store.all() if other_data else ():  # the records are read only if needed
        if Kind(record.kind) is Kind.EVALUATE:
            tested = {source.digest for table, source in record.data.items() if table.split(".")[-1] == "test"}
            for subject in record.parents.values():
                judged_on.setdefault(subject, set()).update(tested)
    for side, what in other_data:
        if prepared.digests[side.table("test")] in judged_on.get(side.record.fingerprint, set()):
            continue
        raise DataError(
            f"the {what} {side.name} was trained on {side.train.path} with the md5 {side.train.digest[:8]}, which is "
            f"{prepared.digests[side.table('train')][:8]} today, and was never evaluated on today's test items: some "
            "of them may be in its training data. Train it again on today's data "
            f"(`cursus run {side.record.recipe} --data {side.dataset}`), or restore the data"
            + ("" if side is contest.candidate else ", or evaluate the candidate alone with `cursus promote --alone`")
        )


def judging(contest: Contest, prepared: Prepared, settings: PromotionSettings, root: Path) -> Step:
    """The step that evaluates both models on the same test table.

    Raises RecipeError for a criterion that cannot be measured.
    """
    family = contest.candidate.family
    for criterion in settings.criteria:
        if (problem := criterion.problem(family.metrics)) is not None:
            raise RecipeError(f"params.yaml: promotion.criteria.{criterion.name}: {problem}")
    sides = {CHAMPION: contest.champion, CANDIDATE: contest.candidate}
    present = {name: side for name, side in sides.items() if side is not None}
    suite = _suite(settings, family, contest.champion is not None)
    for evaluation in suite:
        if (unfit := evaluation.unfit(family.name, prepared.language)) is not None:
            raise RecipeError(f"params.yaml: promotion.criteria: {unfit}")
    stage = Stage(
        kind=Kind.EVALUATE,
        start=tuple(present),
        corpus=(contest.candidate.task,),
        suite=tuple(suite),
    )
    parents = {f"subject:{name}@{side.record.seed}": side.record.fingerprint for name, side in present.items()}
    available, task = sources(root, prepared), contest.candidate.task
    tables = {name: available[name] for name in judged_tables([task])}
    families = {} if task == MAIN else {task: family}
    judged = dict.fromkeys(parents, (task,))
    return identify_step(RECIPE, STAGE, stage, 0, False, parents, tables, family, None, families, judged)


def check_predictions(folder: Path, prepared: Prepared, contest: Contest) -> None:
    """Raise DataError unless every model has predicted every test example exactly once."""
    from pyarrow import parquet

    size = parquet.read_metadata(prepared.tables[contest.candidate.table("test")]).num_rows
    table = parquet.read_table(folder / PREDICTIONS, columns=["stage", "index"])
    for side, name in ((contest.candidate, CANDIDATE), (contest.champion, CHAMPION)):
        if side is None:
            continue
        predicted = sorted(row["index"] for row in table.to_pylist() if row["stage"] == name)
        if predicted != list(range(size)):
            raise DataError(
                f"{folder / PREDICTIONS}: the {name} {side.name} has {len(predicted)} predictions for {size} test "
                f"items; nothing is compared. Delete {folder} and run again"
            )


def _side(store: Store, fingerprint: str) -> Side:
    lineage = ancestry(store, fingerprint)
    record, folder = lineage[fingerprint], store.folder(fingerprint)
    if record.kind not in ANSWERING_KINDS:
        raise DataError(
            f"{record.recipe}/{label(record)} ({fingerprint[:8]}) answers no task and cannot be evaluated; name the "
            "model that was fine-tuned from it"
        )
    # parents come first: the table of the nearest stage counts
    read = [
        (one.data[table], task)
        for one in lineage.values()
        for task in tasks_in(one.data)
        if (table := labelled_table(task, "train")) in one.data
    ]
    if not read:
        raise DataError(f"{record.recipe}/{label(record)} ({fingerprint[:8]}): its lineage names no labelled table")
    return Side(record, folder, lineage, *read[-1])


def _refuse_incomparable(candidate: Side, champion: Side, alias: str) -> None:
    """Raise DataError for two models that no test table can compare."""
    pair = f"the candidate {candidate.name} and the {alias} {champion.name} cannot be compared: "
    if candidate.family != champion.family:
        raise DataError(f"{pair}one answers {candidate.family.name}, the other {champion.family.name}")
    if candidate.task != champion.task:
        raise DataError(f"{pair}one answers the task {candidate.task}, the other {champion.task}")
    if candidate.dataset != champion.dataset:
        raise DataError(
            f"{pair}one was trained on {candidate.dataset}, the other on {champion.dataset}. Train both on one "
            "dataset, or evaluate the candidate alone with --alone"
        )
    if candidate.labels != champion.labels:
        only = [
            sorted(set(one.labels) - set(other.labels)) for one, other in ((candidate, champion), (champion, candidate))
        ]
        differences = [
            f"only the {name} has {', '.join(labels)}"
            for name, labels in zip((CANDIDATE, alias), only, strict=True)
            if labels
        ]
        raise DataError(f"{pair}their labels differ, {' and '.join(differences)}. --alone evaluates it alone")


def _suite(settings: PromotionSettings, family: TaskFamily, champion: bool) -> list[Evaluation]:
    """The evaluations that the criteria require, each once, as far as they are defined for the family."""
    discover("pipelines.judging.evaluations")
    suite: dict[str, dict[str, Any]] = {}
    # scores are always part of the suite: a person reads them
    scores = {"name": Evaluation.default_name}
    for required in [one for criterion in settings.criteria for one in criterion.evaluations(champion)] + [scores]:
        member = Evaluation.members.get(required["name"])
        # the criterion itself reports an evaluation that is not defined for the family
        if member is not None and (member.reads is None or family.name in member.reads):  # type: ignore[attr-defined]
            suite.setdefault(required["name"], required)
    try:
        return [Evaluation.model_validate(required) for required in suite.values()]
    except ValidationError as invalid:
        message = invalid.errors()[0]["msg"].removeprefix("Value error, ")
        raise RecipeError(f"params.yaml: promotion.criteria: {message}") from None
