"""Do the parts of a stage meet? Whatever can be refused is refused here, before anything computes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from pipelines.components import Component, did_you_mean, discover
from pipelines.corruptions import Corruption
from pipelines.encoding import MULTIPLE
from pipelines.evaluations import Evaluation
from pipelines.heads import Head
from pipelines.layouts import Layout
from pipelines.recipe.schema import Checkpoint, Kind, Stage, Untrained
from pipelines.segmentations import UNSPACED, Segmentation
from pipelines.strategies import Strategy, conflict
from pipelines.task_families import TaskFamily
from pipelines.tokenizers import Tokenizer
from pipelines.vocabulary import Field, Signal

Problem: TypeAlias = tuple[str, str]
"""The key that is wrong, and a sentence that says why and what would fit."""


@dataclass(frozen=True)
class Setting:
    """What a recipe is about to be run on; what is None is not known yet, and nothing is refused for its sake."""

    family: str | None = None
    """Name of the dataset's task family."""
    language: str | None = None
    """ISO 639 code."""


def check(stage: Stage, resolve: Callable[[str], Stage], setting: Setting) -> Problem | None:
    """The first thing wrong with a stage, or None. `resolve` gives the stage that a reference names."""
    if stage.kind is Kind.EVALUATE:
        return _check_evaluate(stage, resolve, setting)
    return (
        _check_start(stage, resolve)
        or _check_corpus(stage)
        or _check_parts(stage)
        or _check_task(stage, setting)
        or _check_body(stage)
        or _check_words(stage, setting)
        or _check_supply(stage)
    )


def _check_evaluate(stage: Stage, resolve: Callable[[str], Stage], setting: Setting) -> Problem | None:
    if not stage.suite:
        return "suite", "an evaluate stage needs at least one evaluation"
    subjects = stage.start if isinstance(stage.start, tuple) else (stage.start,)
    answering = {}
    for subject in subjects:
        if not isinstance(subject, str):
            return "start", "an evaluate stage starts from the stages it judges: a name or a list of names"
        judged = resolve(subject)
        if judged.kind is Kind.EVALUATE:
            return "start", f"stage {subject!r} evaluates; name stages that make models"
        answering[subject] = not judged.kind.reads_plain_text
        for evaluation in stage.suite:
            if (
                not answering[subject]
                and evaluation.judges == "language models"
                and (unfit := _unfit(evaluation, judged))
            ):
                return "suite", f"{evaluation.name} cannot judge stage {subject!r}: {unfit}"
    wanted = {evaluation.judges for evaluation in stage.suite}
    for subject, answers in answering.items():
        if answers and "task models" not in wanted:
            return "start", f"stage {subject!r} answers a task, and no evaluation here judges that; add one, or drop it"
        if not answers and "language models" not in wanted:
            return "start", f"stage {subject!r} has no labels to be judged on; name finetune or compress stages"
    for evaluation in stage.suite:
        for named in evaluation.subjects:
            if named not in subjects:
                return (
                    "suite",
                    f"{evaluation.name} names the stage {named!r}, which is not judged here.{did_you_mean(named, subjects)}",
                )
        if setting.family is not None and evaluation.reads is not None and setting.family not in evaluation.reads:
            return (
                "suite",
                f"{evaluation.name} is defined for {_words(evaluation.reads)}; this dataset is {setting.family}",
            )
    return None


def _unfit(evaluation: Evaluation, judged: Stage) -> str | None:
    """Why a stage on plain text cannot be judged."""
    if judged.head is not None and (unsaid := evaluation.needs_signals - judged.head.provides):
        return f"its head {judged.head.name} does not say {_words(unsaid)}; heads that do: {_fitting(Head, partial(_says, unsaid))}"
    limit, longest = judged.backbone.longest if judged.backbone else None, evaluation.longest_row
    if limit is not None and longest is not None and longest > limit:
        return f"rows of up to {longest} tokens do not fit its {limit} positions; ask for less, or raise backbone.positions"
    return None


def _check_start(stage: Stage, resolve: Callable[[str], Stage]) -> Problem | None:
    if isinstance(stage.start, tuple):
        return "start", "only an evaluate stage starts from several others"
    if stage.start is None and stage.kind not in (Kind.PRETRAIN, Kind.FINETUNE):
        return "start", f"a {stage.kind} stage continues another: name the stage it starts from"
    if stage.start is None and (stage.tokenizer is None or stage.backbone is None):
        missing = "tokenizer" if stage.tokenizer is None else "backbone"
        either = "" if stage.kind is Kind.PRETRAIN else "name the stage it starts from; "
        return missing, f"{either}a stage that starts from nothing needs a tokenizer and a backbone"
    if isinstance(stage.start, Untrained):
        resolve(stage.start.untrained)
    elif isinstance(stage.start, str):
        resolve(stage.start)
    elif isinstance(stage.start, Checkpoint) and stage.kind is not Kind.PRETRAIN:
        return "start", "only a pretrain stage takes over a checkpoint; let this stage start from that one"
    if stage.teacher is not None:
        resolve(stage.teacher)
    return None


def _check_corpus(stage: Stage) -> Problem | None:
    if not stage.corpus:
        return "corpus", "name what this stage reads: general, domain, task_text or task"
    if stage.kind.reads_plain_text and "task" in stage.corpus:
        return "corpus", "'task' holds labels; its unlabelled text is called task_text"
    if stage.kind is Kind.FINETUNE and stage.corpus != ("task",):
        return "corpus", "a finetune stage reads labels: corpus: task"
    return None


def _check_parts(stage: Stage) -> Problem | None:
    if stage.head is None:
        return "head", "a stage that trains needs a head"
    if stage.kind is not Kind.COMPRESS and not stage.objective and stage.budget.tokens != 0:
        return "objective", "a stage that trains needs an objective"
    if stage.trains and not stage.strategy:
        return "strategy", f"a stage that trains needs a strategy; known: {_fitting(Strategy, lambda _: True)}"
    if impossible := conflict(stage.strategy):
        return "strategy", impossible
    if stage.trains and stage.budget.tokens is None and stage.budget.epochs is None:
        return "budget", "give tokens or epochs"
    if stage.kind is Kind.FINETUNE and stage.budget.epochs is None:
        return "budget", "a finetune stage counts in epochs"
    if stage.kind is Kind.COMPRESS and not stage.compression:
        return "compression", "a compress stage needs at least one compression"
    return None


def _check_task(stage: Stage, setting: Setting) -> Problem | None:
    """Labels meet a head that reads them; plain text meets one that reads plain text."""
    assert stage.head is not None
    if stage.kind.reads_plain_text and stage.head.reads:
        fits = _fitting(Head, lambda head: not head.reads)
        return "head", f"{stage.head.name} reads labelled examples, this stage reads plain text; heads that do: {fits}"
    if stage.kind.reads_plain_text:
        return None
    if not stage.head.reads:
        fits = _fitting(Head, lambda head: setting.family in head.reads if setting.family else bool(head.reads))
        return "head", f"{stage.head.name} reads plain text and answers no task; heads that do: {fits}"
    if "task_text" in stage.corpus and setting.family is not None:
        family = TaskFamily.model_validate(setting.family)
        if not family.of_one_text:
            return "corpus", f"task_text is no example of {family.name} without its answer; leave corpus: task"
    if setting.family is not None and setting.family in stage.head.reads:
        unfit = stage.head.unfit(TaskFamily.model_validate(setting.family))
        return ("head", f"{stage.head.name}, {unfit}") if unfit else None
    if setting.family is not None:
        fits = _fitting(Head, lambda head: setting.family in head.reads)
        return (
            "head",
            f"{stage.head.name} answers {_words(stage.head.reads)}, and this dataset is {setting.family}; heads that "
            f"fit: {fits}",
        )
    return None


def _check_body(stage: Stage) -> Problem | None:
    """The head's demands on the body, and the length of its rows."""
    if stage.backbone is None or stage.head is None:  # it starts from another recipe's stage
        return None
    if lacking := stage.head.needs_body - stage.backbone.offers:
        return (
            "head",
            f"{stage.head.name} needs a body that is {_words(lacking)}, and this one ({stage.backbone.described}) is "
            f"{_words(stage.backbone.offers)}; bodies that fit: {', '.join(stage.backbone.fitting(stage.head.needs_body))}",
        )
    for objective in stage.objective:
        for signal in sorted(objective.needs_signals):
            ability = stage.head.needs_body_for.get(signal)
            if ability is not None and ability not in stage.backbone.offers:
                fits = ", ".join(stage.backbone.fitting(frozenset({ability})))
                return (
                    "objective",
                    f"{objective.name} needs {signal}, which {stage.head.name} says of a body that is {ability}, and this "
                    f"one ({stage.backbone.described}) is not; bodies that fit: {fits}",
                )
    # rows of labelled examples are padded
    width = stage.budget.length if stage.kind.reads_plain_text else -(-stage.budget.length // MULTIPLE) * MULTIPLE
    if stage.backbone.longest is not None and width > stage.backbone.longest:
        return (
            "budget",
            f"length: rows of {width} tokens do not fit the {stage.backbone.longest} positions of the "
            "backbone; raise backbone.positions or lower length",
        )
    return None


def _check_words(stage: Stage, setting: Setting) -> Problem | None:
    """The segmentation finds the words of the dataset's language."""
    if stage.segmentation is None or setting.language is None:
        return None
    found = stage.segmentation.languages
    if setting.language in found if found is not None else setting.language not in UNSPACED:
        return None
    fits = _fitting(
        Segmentation,
        lambda one: setting.language in one.languages if one.languages else setting.language not in UNSPACED,
    )
    finds = _words(found) if found is not None else "languages written with spaces"
    return (
        "segmentation",
        f"{stage.segmentation.name} finds the words of {finds}, and this dataset's language is {setting.language}; what "
        f"would fit: {fits}",
    )


def _check_supply(stage: Stage) -> Problem | None:
    """Demand ⊆ supply, for fields and for signals."""
    assert stage.head is not None
    fields = {Field.INPUT_IDS, Field.ORIGINAL_IDS}
    if stage.kind.reads_plain_text:
        fields |= {Field.DOCUMENTS, *stage.layout.provides}
        if stage.segmentation is not None:
            fields |= stage.segmentation.provides
    else:
        fields |= {Field.ATTENTION_MASK, *stage.head.needs}
        if stage.corpus == ("task",):
            fields |= stage.head.labels
        if stage.corruption:
            return "corruption", "corruptions change plain text; a stage on labels has none: corruption: []"
        pieces = next((one.name for one in stage.corruption if one.segments > 1), None)
        if pieces is not None and Field.MEMORY in stage.layout.provides:
            fits = _fitting(Layout, lambda layout: Field.MEMORY not in layout.provides)
            return (
                "layout",
                f"{pieces} cuts windows in pieces, and {stage.layout.name} rows go on from batch to batch; use {fits}",
            )
    for corruption in stage.corruption:
        if lacking := corruption.needs - fields:
            offers = [*_offering(Corruption, lacking), *_offering(Segmentation, lacking)]
            hint = f"; what does: {', '.join(offers)}" if offers else ""
            return "corruption", f"{corruption.name} needs {_words(lacking)}, which nothing before it provides{hint}"
        if stage.tokenizer is not None and (missing := corruption.needs_tokens - stage.tokenizer.offers):
            return (
                "corruption",
                f"{corruption.name} needs a tokenizer with {_words(missing)}; {stage.tokenizer.name} has none",
            )
        fields = (fields - corruption.replaces) | corruption.provides
    if stage.tokenizer is not None and (missing := stage.head.needs_tokens - stage.tokenizer.offers):
        fits = _fitting(Tokenizer, lambda tokenizer: missing <= tokenizer.offers)
        return (
            "head",
            f"{stage.head.name} needs a tokenizer with {_words(missing)}; {stage.tokenizer.name} has none; use {fits}",
        )
    demands = [("head", stage.head.name, stage.head.needs - {Field.MEMORY}, stage.head.provides)]
    for objective in stage.objective:
        demands.append(("objective", objective.name, objective.needs_fields, objective.needs_signals))
        for name in objective.companion_heads:
            demands.append(("objective", f"{objective.name}'s {name}", Head.members[name].needs, frozenset()))  # type: ignore[attr-defined]
    for key, name, needed, _ in demands[1:] + demands[:1] if stage.objective else ():
        if lacking := needed - fields:
            offers = _offering(Corruption, lacking) if stage.kind.reads_plain_text else _labelling(lacking)
            hint = f"; what does: {', '.join(offers)}" if offers else ""
            return key, f"{name} needs {_words(lacking)}, which nothing here provides{hint}"
    for objective in stage.objective:
        if unsaid := objective.needs_signals - stage.head.provides:
            says = _fitting(Head, partial(_says, unsaid))
            return (
                "objective",
                f"{objective.name} needs {_words(unsaid)}, which the head {stage.head.name} does not say; heads that do: "
                f"{says or 'none'}",
            )
        if objective.needs_teacher and stage.teacher is None:
            return "teacher", f"{objective.name} learns from a teacher: name the stage that teaches"
    return None


def _says(wanted: frozenset[Signal], head: type[Head]) -> bool:
    return wanted <= head.provides


def _fitting(family: type[Component], fits: Callable[..., bool]) -> str:
    """The members of a family that would do, by name."""
    discover(family.__module__)
    return ", ".join(name for name, member in sorted(family.members.items()) if fits(member))


def _offering(family: type[Component], lacking: Iterable[Field]) -> list[str]:
    discover(family.__module__)
    wanted = set(lacking)
    return [name for name, member in sorted(family.members.items()) if wanted <= set(member.provides)]  # type: ignore[attr-defined]


def _labelling(lacking: Iterable[Field]) -> list[str]:
    wanted = set(lacking)
    return [name for name, member in sorted(Head.members.items()) if wanted <= set(member.labels)]  # type: ignore[attr-defined]


def _words(values: Iterable[object]) -> str:
    return ", ".join(sorted(str(value) for value in values))
