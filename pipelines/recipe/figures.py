"""Which judge records the figure of a claim: an evaluation or a probe that can judge the compared stages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

from pydantic import ValidationError

from pipelines.components import did_you_mean, discover
from pipelines.errors import RecipeError
from pipelines.judging.evaluations import Evaluation
from pipelines.judging.figures import STEP_FIGURES, RecordedFigure
from pipelines.judging.probes import Probe
from pipelines.recipe.check import check
from pipelines.recipe.claim import Claim
from pipelines.recipe.kinds import Kind
from pipelines.recipe.problems import Problem, Setting, listed
from pipelines.recipe.schema import Stage
from pipelines.recipe.tables import setting_of
from pipelines.task_families import TaskFamily
from pipelines.task_families.labelled_tables import MAIN

RECORD = ""
"""Name in place of a judge's for the figures of the records of trained stages."""
Recorded: TypeAlias = dict[str, dict[str, RecordedFigure]]
"""Figure → names of the judges that record it, each with what it records under that name."""


@dataclass(frozen=True)
class FigureSource:
    """The figure of a claim, and the stage that measures it."""

    figure: RecordedFigure
    judging: Stage | None
    """Judging stage over the compared stages; None where the records of their training have the figure."""
    judge: str
    """Name of the evaluation or probe; `RECORD` where there is none."""


@cache
def recorded_figures(family: str | None) -> Recorded:
    """Every figure that is recorded of models on a dataset of `family`; None: on any."""
    discover(TaskFamily.__module__)
    discover(Evaluation.__module__)
    discover(Probe.__module__)
    families = [TaskFamily.model_validate(name) for name in ([family] if family else sorted(TaskFamily.members))]
    result: Recorded = {}

    def add(judge: str, figures: Iterable[RecordedFigure]) -> None:
        for figure in figures:
            result.setdefault(figure.name, {}).setdefault(judge, figure)

    for one in families:
        for name, evaluation in sorted(Evaluation.members.items()):
            assert issubclass(evaluation, Evaluation)
            if evaluation.reads is None or one.name in evaluation.reads:
                add(name, evaluation.figures(one))
    for name in sorted(Probe.members):
        probe = Probe.model_validate(name)
        if family is None or probe.reads is None or family in probe.reads:
            add(name, probe.figures())
    add(RECORD, STEP_FIGURES)
    return result


def source_of(
    claim: Claim, compared: Sequence[str], task: str, resolve: Callable[[str], Stage], setting: Setting
) -> FigureSource | Problem:
    """Where the figure of `claim` over the stages `compared`, the best last, comes from; or why nowhere.

    `task` is the one on which they are judged; empty for language models.
    """
    setting = setting_of((task,) if task else (), setting)
    recorded = recorded_figures(setting.family)
    name = claim.figure
    if name is not None and name not in recorded:
        on = f" of {setting.family}" if setting.family else ""
        return "figure", f"no judge records {name!r}{on}.{did_you_mean(name, recorded)}"
    # without a figure, the first metric of the dataset's task, which the default evaluation records
    judges = recorded[name] if name is not None else {Evaluation.default_name: _first_metric(setting, recorded)}
    if claim.by is not None:
        return _by(claim, claim.by, judges, compared, task, resolve, setting)
    if RECORD in judges:
        return FigureSource(judges[RECORD], None, RECORD)
    fits: dict[str, FigureSource] = {}
    problems: list[Problem] = []
    for judge, figure in judges.items():
        suite = [_options(judge, compared, name), *_baselines(figure, compared, resolve, setting)]
        stage = _judging(judge, suite, compared, task)
        problem = check(stage, resolve, setting)
        if problem is None:
            fits[judge] = FigureSource(figure, stage, judge)
        else:
            problems.append(problem)
    if len(fits) > 1:
        return "by", f"{name} is recorded by {listed(fits)}: name one of them"
    return next(iter(fits.values())) if fits else ("figure", problems[0][1])


def _by(
    claim: Claim,
    by: str | Mapping[str, object],
    judges: Mapping[str, RecordedFigure],
    compared: Sequence[str],
    task: str,
    resolve: Callable[[str], Stage],
    setting: Setting,
) -> FigureSource | Problem:
    options = {"name": by} if isinstance(by, str) else dict(by)
    judge = str(options.get("name", ""))
    if judge not in judges or judge == RECORD:
        what = claim.figure or "the first metric of a task"
        return "by", f"{judge!r} does not record {what}; recorded by: {listed(one for one in judges if one != RECORD)}"
    try:
        own = {**_options(judge, compared, claim.figure), **options}
        stage = _judging(judge, [own, *_baselines(judges[judge], compared, resolve, setting)], compared, task)
    except ValidationError as error:
        return "by", error.errors()[0]["msg"].removeprefix("Value error, ")
    problem = check(stage, resolve, setting)
    return FigureSource(judges[judge], stage, judge) if problem is None else ("by", problem[1])


def _first_metric(setting: Setting, recorded: Recorded) -> RecordedFigure:
    family = TaskFamily.model_validate(setting.family) if setting.family else TaskFamily.default()
    return recorded[family.metrics[0]][Evaluation.default_name]


def _options(judge: str, compared: Sequence[str], figure: str | None) -> dict[str, object]:
    """The judge with the options with which it compares stages."""
    if judge in Probe.members:
        return {"name": judge}
    member = Evaluation.members[judge]
    assert issubclass(member, Evaluation)
    return {"name": judge, **member.options_to_compare(compared, figure)}


def _baselines(
    figure: RecordedFigure, compared: Sequence[str], resolve: Callable[[str], Stage], setting: Setting
) -> list[dict[str, object]]:
    """The evaluations that score answers without a network by the same figure, where they are defined for its data.

    They learn from as many labels as the compared stages, where these read a part of the table.
    """
    labelled = [resolve(one).budget.labelled for one in compared]
    known = [one for one in labelled if one is not None]
    result: list[dict[str, object]] = []
    for name, member in sorted(Evaluation.members.items()):
        assert issubclass(member, Evaluation)
        reads = member.reads or frozenset[str]()
        if member.baseline_sample == figure.sample and setting.family in reads:
            limited = {"labelled": max(known)} if len(known) == len(labelled) else {}
            result.append({"name": name, **limited})
    return result


def _judging(judge: str, suite: Sequence[Mapping[str, object]], compared: Sequence[str], task: str) -> Stage:
    """The judging stage of a claim; a probe is alone."""
    if judge in Probe.members:
        return Stage.model_validate(
            {"kind": Kind.PROBE, "start": list(compared), "probes": suite[:1], "corpus": task or MAIN}
        )
    return Stage.model_validate(
        {"kind": Kind.EVALUATE, "start": list(compared), "suite": list(suite), "corpus": task or MAIN}
    )


def required(source: FigureSource | Problem, name: str) -> FigureSource:
    """`source`, if it is one. Raises RecipeError with the problem of the claim `name` otherwise."""
    if isinstance(source, FigureSource):
        return source
    key, message = source
    raise RecipeError(f"claim {name}: {key}: {message}")


def figure_names() -> Iterator[tuple[str, RecordedFigure, list[str]]]:
    """Every figure with the judges that record it, for the catalogue."""
    for name, judges in sorted(recorded_figures(None).items()):
        yield name, next(iter(judges.values())), sorted(judges)
