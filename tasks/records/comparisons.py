"""Executions side by side: what was requested, what came of it, and the paired differences of their models.

The scores of two models differ by less than their intervals suggest where both answered the same test examples: what
makes an example hard cancels out. `paired_differences` resamples the examples for both at once, from what evaluate
stages keep of every example (`samples.safetensors`, `predictions.parquet`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelines.errors import CursusError
from pipelines.judging.certainty.contrasts import ContrastInterval, WeightedSide, contrast_interval
from pipelines.judging.evaluations.stage import EVALUATION, PREDICTIONS
from pipelines.judging.figures import UNBOUNDED, likelihood_figures
from pipelines.judging.samples import read_samples
from pipelines.lineage.provenance import Provenance
from pipelines.lineage.store import Store
from pipelines.recipe.final_models import LineageStep
from pipelines.reports.score_tables import EXECUTION
from pipelines.task_families import TaskFamily
from pipelines.task_families.labelled_tables import MAIN, labelled_table
from tasks.records.headlines import BITS, Headline, JudgedModel, headline_of, judged_models

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pipelines.judging.certainty.resampling import Score

ANSWERS = "answers"
"""Sample of the answers to a task, from which every metric of its family is computed."""
SHOWN = 5
"""Executions that an error names."""
PAIRED = ("best", "served")


@dataclass(frozen=True)
class ComparedExecution:
    """An execution whose report was written."""

    record: Mapping[str, Any]
    """Its `execution.json`."""
    store: Store

    @property
    def id(self) -> str:
        return str(self.record["id"])

    @cached_property
    def steps(self) -> list[LineageStep]:
        return [LineageStep.read(step) for step in self.record["steps"]]

    @cached_property
    def headline(self) -> Headline:
        """As recorded; of a record from before there were headlines, from the store."""
        known = self.record.get("headline")
        return headline_of(self.store, self.steps) if known is None else Headline.read(known)

    @cached_property
    def models(self) -> list[JudgedModel]:
        return judged_models(self.store, self.steps)

    @property
    def parameters(self) -> dict[str, str]:
        """What was requested, as far as it was recorded."""
        known = {key: str(self.record[key]) for key in ("dataset", "recipe")}
        return known | dict(self.record.get("parameters", {}))


@dataclass(frozen=True)
class PairedDifference:
    """The score of a model of one execution minus that of a model of another."""

    side: str
    task: str | None
    metric: str
    lower: bool
    """Whether less is better."""
    first: str
    second: str
    """Stages of the models."""
    items: int
    """Test examples that both answered."""
    interval: ContrastInterval

    @property
    def verdict(self) -> str:
        """`better` or `worse` only if the interval excludes zero."""
        if self.interval.low <= 0 <= self.interval.high:
            return "cannot tell"
        return "better" if (self.interval.value < 0) is self.lower else "worse"


@dataclass(frozen=True)
class _Measured:
    """What an evaluate stage kept of a model."""

    models: Sequence[NDArray[np.float64]]
    """Rows [N, …] of each seed."""
    items: str
    """Digest of the test table."""
    family: str


def find_execution(root: Path, store: Store, reference: str) -> ComparedExecution:
    """The execution whose id is `reference` or contains it. Raises CursusError when there is none, or several."""
    records = sorted((root / "reports").glob(f"*/{EXECUTION}"))
    known = [path.parent.name for path in records]
    matches = [reference] if reference in known else [name for name in known if reference in name]
    if len(matches) != 1:
        listed = ", ".join((matches or known)[: -SHOWN - 1 : -1])
        if matches:
            problem = f"{len(matches)} executions have {reference!r} in their ids: {listed}"
        else:
            newest = f"the newest are {listed}" if known else "there is none yet: `cursus run`"
            problem = f"no execution has {reference!r} in its id; {newest}"
        raise CursusError(f"{root / 'reports'}: {problem}")
    path = root / "reports" / matches[0] / EXECUTION
    return ComparedExecution(json.loads(path.read_text(encoding="utf-8")), store)


def paired_differences(
    first: ComparedExecution, second: ComparedExecution
) -> tuple[list[PairedDifference], str | None]:
    """The best and the served model of `second` minus those of `first`, by the decisive metric of each task, and why
    there is no difference if there is none."""
    pairs = [
        (one, other)
        for one in first.models
        for other in second.models
        if one.side in PAIRED and (one.side, one.task, one.metrics[0]) == (other.side, other.task, other.metrics[0])
    ]
    if not pairs:
        return [], "they have no model that was scored by the same metric of the same task"
    measured = [(one, other, _measured(first, one), _measured(second, other)) for one, other in pairs]
    kept = [(one, other, before, after) for one, other, before, after in measured if before and after]
    if not kept:
        return [], "their evaluations did not keep the answers to each test example, or are no longer in the store"
    same = [pair for pair in kept if _same_items(pair[2], pair[3])]
    if not same:
        return [], "they were judged on different test examples"
    differences: dict[tuple[str | None, str, str, str], PairedDifference] = {}
    for one, other, before, after in same:
        score, bounds = _score(one, before.family)
        sides = [WeightedSide(-1, score, before.models, "test"), WeightedSide(1, score, after.models, "test")]
        interval = contrast_interval(sides, 0, bounds=bounds)
        names = one.row.name, other.row.name
        # where the best model is the served one, a second line would repeat the first
        differences.setdefault(
            (one.task, one.metrics[0], *names),
            PairedDifference(one.side, one.task, one.metrics[0], one.lower, *names, len(before.models[0]), interval),
        )
    return list(differences.values()), None


def _same_items(first: _Measured, second: _Measured) -> bool:
    sizes = {len(rows) for one in (first, second) for rows in one.models}
    return first.items == second.items and len(sizes) == 1


def _score(model: JudgedModel, family: str) -> tuple[Score, tuple[float, float]]:
    """Rows of any examples → the decisive metric, and the bounds of a difference of two."""
    metric = model.metrics[0]
    if metric == BITS:
        figure = likelihood_figures(model.metrics[1], BITS)[1]
        return figure.score, UNBOUNDED
    return TaskFamily.model_validate(family).scorer(metric), (-2.0, 2.0)


def _measured(execution: ComparedExecution, model: JudgedModel) -> _Measured | None:
    """What the last evaluate stage of an execution that judged `model` kept of it."""
    sample = model.metrics[1] if model.metrics[0] == BITS else ANSWERS
    for folder, record, dataset in reversed(list(_evaluations(execution))):
        task = dataset.get("task")
        source = record.data.get(labelled_table(task or MAIN, "test"))
        if source is None or (model.task != task and model.metrics[0] != BITS):
            continue
        rows = read_samples(folder).get((sample, model.row.name))
        if rows is None and sample == ANSWERS:
            rows = _of_predictions(folder / PREDICTIONS, model.row.name, dataset)
        if rows:
            return _Measured(rows, source.digest, str(dataset.get("family") or TaskFamily.default_name))
    return None


def _evaluations(execution: ComparedExecution) -> Iterator[tuple[Path, Provenance, Mapping[str, Any]]]:
    """The folder, the record and the dataset of each evaluate stage that is still in the store."""
    for step in execution.steps:
        folder = execution.store.root / step.fingerprint
        if step.kind == "evaluate" and (folder / EVALUATION).is_file():
            document = json.loads((folder / EVALUATION).read_text(encoding="utf-8"))
            yield folder, Provenance.read(folder), document.get("dataset", {})


def _of_predictions(path: Path, stage: str, dataset: Mapping[str, Any]) -> list[NDArray[np.float64]] | None:
    """Statistics of a classifier's answers to single texts, under each seed; other answers are not plain labels."""
    family = TaskFamily.model_validate(dataset.get("family") or TaskFamily.default_name)
    if not family.is_single_text or not path.is_file():
        return None
    import pyarrow.parquet

    columns = ["seed", "index", "label", "predicted"]
    table = pyarrow.parquet.read_table(path, columns=columns, filters=[("stage", "=", stage)])
    labels = [str(label) for label in dataset.get("labels", ())]
    rows = table.sort_by([("seed", "ascending"), ("index", "ascending")]).to_pydict()
    seeds: dict[int, tuple[list[str], list[str]]] = {}
    for seed, label, predicted in zip(rows["seed"], rows["label"], rows["predicted"], strict=True):
        right, given = seeds.setdefault(seed, ([], []))
        right.append(label)
        given.append(predicted)
    return [family.statistics(right, given, labels) for right, given in seeds.values()] or None
