"""Check that the evaluations of an evaluate stage can judge the stages it starts from."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pipelines.components import did_you_mean
from pipelines.judging.evaluations import Evaluation
from pipelines.parts.heads import Head
from pipelines.recipe.lines import line_views
from pipelines.recipe.problems import Problem, Setting, listed, matching_members
from pipelines.recipe.schema import Stage
from pipelines.recipe.tables import judged_tasks, setting_of, task_words
from pipelines.task_families.labelled_tables import MAIN


def check_judging(stage: Stage, resolve: Callable[[str], Stage], setting: Setting) -> Problem | None:
    """First problem of an evaluate stage on a dataset; None when it is valid."""
    if not stage.suite:
        return "suite", "an evaluate stage needs at least one evaluation"
    names = [evaluation.name for evaluation in stage.suite]
    if twice := next((name for name in names if names.count(name) > 1), None):
        return "suite", f"{twice} is given twice; put the second into an evaluate stage of its own"
    subjects = stage.start if isinstance(stage.start, tuple) else (stage.start,)
    answers_task = {}
    families = set[str | None]()
    tasks: dict[str, str] = {}
    for subject in subjects:
        if not isinstance(subject, str):
            return "start", "an evaluate stage starts from the stages it judges: a stage name or a list of stage names"
        judged = resolve(subject)
        if judged.kind.judges:
            return "start", f"stage {subject!r} is of kind {judged.kind} and produces no model; name stages that do"
        labelled = {name: view for name, view in line_views(judged).items() if not view.kind.reads_plain_text}
        answers_task[subject] = bool(labelled)
        if len(labelled) > 1 and (unclear := _unclear_task(stage, subject, labelled)):
            return "corpus", unclear
        corpus = stage.corpus if len(labelled) > 1 else judged.corpus
        words = [word for view in labelled.values() for word in task_words(view.corpus, setting)]
        tasks |= dict.fromkeys(judged_tasks(stage.corpus, tuple(words)), subject)
        families.add(setting_of(corpus, setting).family if answers_task[subject] else setting.family)
        judges = "task models" if answers_task[subject] else "language models"
        for evaluation in stage.suite:
            if evaluation.judges == judges and (unfit := _unfit(evaluation, judged)):
                return "suite", f"{evaluation.name} cannot judge stage {subject!r}: {unfit}"
    if len(tasks) > 1:
        (one, first), (other, second) = [*tasks.items()][:2]
        return "start", (
            f"stage {first!r} answers {one!r} and stage {second!r} answers {other!r}, which have test tables of their "
            "own; judge each task in an evaluate stage of its own"
        )
    unanswered = [word for word in task_words(stage.corpus, setting) if word != MAIN and word not in tasks]
    if unanswered and tasks:
        return "corpus", f"no judged stage answers {unanswered[0]!r}; they answer {listed(tasks)}"
    judged_kinds = {evaluation.judges for evaluation in stage.suite}
    for subject, answers in answers_task.items():
        if answers and not judged_kinds & {"task models", "models"}:
            return (
                "start",
                f"stage {subject!r} answers a task, but no evaluation here judges task models; add one, or drop the "
                "stage",
            )
        if not answers and not judged_kinds & {"language models", "models"}:
            return (
                "start",
                f"stage {subject!r} was trained without labels, so it cannot be judged on a task; name finetune or "
                "compress stages",
            )
    for evaluation in stage.suite:
        for named in evaluation.subjects:
            if named not in subjects:
                return (
                    "suite",
                    f"{evaluation.name} names the stage {named!r}, which is not among the judged stages."
                    f"{did_you_mean(named, subjects)}",
                )
        for family in sorted(families, key=str):
            if family is not None and (undefined := _undefined(evaluation, family)):
                return "suite", undefined
            if unfit := evaluation.unfit(family, setting.language):
                return "suite", f"{evaluation.name}: {unfit}"
    return None


def _unclear_task(stage: Stage, subject: str, lines: Mapping[str, Stage]) -> str | None:
    """Why it is not clear on which task a stage with several labelled `lines` is judged; None when it is."""
    answered = [" and ".join(line.corpus) for line in lines.values()]
    if len(stage.corpus) == 1 and answered.count(stage.corpus[0]) == 1:
        return None
    return f"stage {subject!r} answers {listed(answered)}; name the one on which it is judged: corpus: {answered[0]}"


def _undefined(evaluation: Evaluation, family: str) -> str | None:
    """Reason why an evaluation is undefined for tasks of `family`; None when it is defined."""
    if evaluation.reads is None or family in evaluation.reads:
        return None
    fits = matching_members(
        Evaluation, lambda one: one.judges == evaluation.judges and (one.reads is None or family in one.reads)
    )
    return (
        f"{evaluation.name} is defined for {listed(evaluation.reads)}; this dataset is {family}; evaluations that fit: "
        f"{listed(fits)}"
    )


def _unfit(evaluation: Evaluation, judged: Stage) -> str | None:
    """Reason why an evaluation cannot judge a stage of the kind that it is for; None when it can."""
    if judged.head is not None and (lacking := evaluation.needs_signals - judged.head.provides):
        providers = matching_members(Head, lambda head: lacking <= head.provides)
        return f"its head {judged.head.name} does not provide {listed(lacking)}; heads that do: {listed(providers)}"
    for ability, instead in evaluation.incompatible_abilities.items():
        if judged.backbone is not None and ability in judged.backbone.offers:
            return f"its backbone ({judged.backbone.label}) has {instead}"
    limit, longest = judged.backbone.max_length if judged.backbone else None, evaluation.longest_row
    if limit is not None and longest is not None and longest > limit:
        return (
            f"rows of up to {longest} tokens do not fit its {limit} positions; "
            "use shorter rows, or raise backbone.positions"
        )
    kept, most = judged.backbone.memory_tokens if judged.backbone else 0, evaluation.most_memory
    if most is not None and kept > most:
        return (
            f"its memory of {kept} tokens is longer than the {most} that come before a text's last row; raise tokens, "
            "or lower backbone.memory_length"
        )
    return None
