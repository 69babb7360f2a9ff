"""The comparison of a candidate with the current champion, and the step that evaluates both on the same examples.

contest = open_contest(root, store, "reviews-rte", "champion")  # rejects incomparable models before computing
steps = judging(contest, prepared, settings)                    # task → an evaluate stage, in the store like any
check_predictions(folder, prepared, contest, task)              # both predicted every test example of the task
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pipelines.components import discover
from pipelines.errors import DataError, RecipeError
from pipelines.judging.evaluations import Evaluation
from pipelines.judging.evaluations.stage import PREDICTIONS
from pipelines.judging.gate.evidence import CANDIDATE, CHAMPION
from pipelines.lineage.store import Store
from pipelines.recipe.kinds import Kind
from pipelines.recipe.plan import Step, identify_step
from pipelines.recipe.schema import Stage
from pipelines.recipe.tables import judged_tables
from pipelines.task_families import TaskFamily
from pipelines.task_families.labelled_tables import MAIN, labelled_table
from tasks.datasets.planning import sources
from tasks.datasets.prepared import Prepared
from tasks.decisions.journal import AliasState
from tasks.models.ancestry import resolve
from tasks.models.default import latest_model
from tasks.promotion.settings import PromotionSettings
from tasks.promotion.sides import AnsweredTask, Side, open_side, refuse_incomparable
from tasks.tracking.champions import champion_state, former
from tasks.tracking.names import answering_name
from tasks.tracking.registry import CANDIDATE as REGISTERED

ALIAS = re.compile(r"[a-z][a-z0-9_-]*")
RECIPE, STAGE = "promotion", "judge"


@dataclass(frozen=True)
class Contest:
    """A candidate and the champion that it is compared with, for an alias of a registered model."""

    model: str
    alias: str
    candidate: Side
    champion: Side | None
    alias_state: AliasState
    """The state of the alias when the contest was opened."""

    @property
    def tasks(self) -> tuple[str, ...]:
        """The tasks that both models answer, each of which is judged."""
        return tuple(self.candidate.tasks)


def open_contest(
    root: Path, store: Store, reference: str | None, alias: str, compare: bool = True, dataset: str | None = None
) -> Contest:
    """The contest of the model `reference` with the current champion; None means the final model of the latest run, of
    `dataset` where that is named.

    Without `compare` the candidate is evaluated alone. Raises CursusError for an unknown reference or dataset,
    DataError for a model without a task and for models that cannot be compared: different tasks, datasets or labels.
    """
    if ALIAS.fullmatch(alias) is None or alias == REGISTERED or alias.startswith(former("")):
        raise RecipeError(
            f"{alias!r} is no alias for a promotion: an alias begins with a letter and consists of lower-case letters, "
            f"digits, _ and -; {REGISTERED} and {former('…')} are reserved for runs and rollbacks"
        )
    fingerprint = latest_model(root, dataset).fingerprint if reference is None else resolve(root, store, reference)[1]
    candidate = open_side(store, fingerprint)
    model = answering_name(root, store, candidate.record)
    state = champion_state(root, store, model, alias)
    champion = None
    if compare and state.champion is not None and state.champion != fingerprint:
        champion = open_side(store, state.champion)
        refuse_incomparable(candidate, champion, alias)
    return Contest(model, alias, candidate, champion, state)


def refuse_other_items(contest: Contest, prepared: Prepared, store: Store) -> None:
    """Raise DataError for a model whose training data may contain some of today's test items."""
    sides = ((contest.candidate, CANDIDATE), (contest.champion, f"current {contest.alias}"))
    other_data = [
        (side, what, task)
        for side, what in sides
        if side
        for task in side.tasks.values()
        if task.train.digest != prepared.digests[task.table("train")]
    ]
    judged_on: dict[str, set[str]] = {}
    for record in store.all() if other_data else ():  # the records are read only if needed
        if Kind(record.kind) is Kind.EVALUATE:
            tested = {source.digest for table, source in record.data.items() if table.split(".")[-1] == "test"}
            for subject in record.parents.values():
                judged_on.setdefault(subject, set()).update(tested)
    for side, what, task in other_data:
        if prepared.digests[task.table("test")] in judged_on.get(side.record.fingerprint, set()):
            continue
        raise DataError(
            f"the {what} {side.name} was trained on {task.train.path} with the md5 {task.train.digest[:8]}, which is "
            f"{prepared.digests[task.table('train')][:8]} today, and was never evaluated on today's test items: some "
            "of them may be in its training data. Train it again on today's data "
            f"(`cursus run {side.record.recipe} --data {side.dataset}`), or restore the data"
            + ("" if side is contest.candidate else ", or evaluate the candidate alone with `cursus promote --alone`")
        )


def judging(contest: Contest, prepared: Prepared, settings: PromotionSettings, root: Path) -> dict[str, Step]:
    """Task → the step that evaluates both models on its test table.

    Raises RecipeError for a criterion that cannot be measured.
    """
    return {
        name: _judging(contest, task, STAGE if len(contest.tasks) == 1 else f"{STAGE}_{name}", prepared, settings, root)
        for name, task in contest.candidate.tasks.items()
    }


def _judging(
    contest: Contest, task: AnsweredTask, stage_name: str, prepared: Prepared, settings: PromotionSettings, root: Path
) -> Step:
    family, of = task.family, f" (of {task.name})" if len(contest.tasks) > 1 else ""
    for criterion in settings.criteria:
        if (problem := criterion.problem(family.metrics)) is not None:
            raise RecipeError(f"params.yaml: promotion.criteria.{criterion.name}{of}: {problem}")
    sides = {CHAMPION: contest.champion, CANDIDATE: contest.candidate}
    present = {name: side for name, side in sides.items() if side is not None}
    suite = _suite(settings, family, contest.champion is not None)
    for evaluation in suite:
        if (unfit := evaluation.unfit(family.name, prepared.language)) is not None:
            raise RecipeError(f"params.yaml: promotion.criteria{of}: {unfit}")
    stage = Stage(kind=Kind.EVALUATE, start=tuple(present), corpus=(task.name,), suite=tuple(suite))
    parents = {f"subject:{name}@{side.record.seed}": side.record.fingerprint for name, side in present.items()}
    available = sources(root, prepared)
    tables = {name: available[name] for name in judged_tables([task.name])}
    families = {} if task.name == MAIN else {task.name: family}
    judged = dict.fromkeys(parents, (task.name,))
    return identify_step(RECIPE, stage_name, stage, 0, False, parents, tables, family, None, families, judged)


def check_predictions(folder: Path, prepared: Prepared, contest: Contest, task: str) -> None:
    """Raise DataError unless every model has predicted every test example of `task` exactly once."""
    from pyarrow import parquet

    size = parquet.read_metadata(prepared.tables[labelled_table(task, "test")]).num_rows
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
