"""Do the parts of a stage meet? Whatever can be refused is refused here, before anything computes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from pipelines.components import did_you_mean
from pipelines.corruptions import Corruption
from pipelines.recipe.schema import Checkpoint, Kind, Stage, Untrained
from pipelines.vocabulary import Field, Signal

Problem: TypeAlias = tuple[str, str]
"""The key that is wrong, and a sentence that says why and what would fit."""


def check(stage: Stage, resolve: Callable[[str], Stage]) -> Problem | None:
    """The first thing wrong with a stage, or None. `resolve` gives the stage that a reference names."""
    if stage.kind is Kind.EVALUATE:
        return _check_evaluate(stage, resolve)
    return _check_start(stage, resolve) or _check_corpus(stage) or _check_parts(stage) or _check_supply(stage)


def _check_evaluate(stage: Stage, resolve: Callable[[str], Stage]) -> Problem | None:
    if not stage.suite:
        return "suite", "an evaluate stage needs at least one evaluation"
    subjects = stage.start if isinstance(stage.start, tuple) else (stage.start,)
    for subject in subjects:
        if not isinstance(subject, str):
            return "start", "an evaluate stage starts from the stages it judges: a name or a list of names"
        if resolve(subject).kind not in (Kind.FINETUNE, Kind.COMPRESS):
            return "start", f"stage {subject!r} has no labels to be judged on; name finetune or compress stages"
    for evaluation in stage.suite:
        for named in evaluation.subjects:
            if named not in subjects:
                return (
                    "suite",
                    f"{evaluation.name} names the stage {named!r}, which is not judged here.{did_you_mean(named, subjects)}",
                )
    return None


def _check_start(stage: Stage, resolve: Callable[[str], Stage]) -> Problem | None:
    if isinstance(stage.start, tuple):
        return "start", "only an evaluate stage starts from several others"
    if stage.start is None and stage.kind is not Kind.PRETRAIN:
        return "start", f"a {stage.kind} stage continues another: name the stage it starts from"
    if stage.start is None and (stage.tokenizer is None or stage.backbone is None):
        missing = "tokenizer" if stage.tokenizer is None else "backbone"
        return missing, "a stage that starts from nothing needs a tokenizer and a backbone"
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
    if stage.trains and stage.strategy is None:
        return "strategy", "a stage that trains needs a strategy, for example `full`"
    if stage.trains and stage.budget.tokens is None and stage.budget.epochs is None:
        return "budget", "give tokens or epochs"
    if stage.kind is Kind.FINETUNE and stage.budget.epochs is None:
        return "budget", "a finetune stage counts in epochs"
    if stage.kind is Kind.COMPRESS and not stage.compression:
        return "compression", "a compress stage needs at least one compression"
    return None


def _check_supply(stage: Stage) -> Problem | None:
    """Demand ⊆ supply, for fields and for signals."""
    assert stage.head is not None
    fields = {Field.INPUT_IDS, Field.ATTENTION_MASK, Field.ORIGINAL_IDS}
    if stage.kind.reads_plain_text:
        fields.add(Field.DOCUMENTS)
    if "task" in stage.corpus and len(stage.corpus) == 1:
        fields.add(Field.LABELS)
    for corruption in stage.corruption:
        if lacking := corruption.needs - fields:
            return "corruption", f"{corruption.name} needs {_words(lacking)}, which nothing before it provides"
        fields |= corruption.provides
    signals = stage.head.provides
    for objective in stage.objective:
        if lacking := objective.needs_fields - fields:
            offers = [
                name
                for name, member in sorted(Corruption.members.items())
                if issubclass(member, Corruption) and lacking <= member.provides
            ]
            hint = f"; a corruption that does: {', '.join(offers)}" if offers else ""
            return "objective", f"{objective.name} needs {_words(lacking)}, which no corruption here provides{hint}"
        if missing := objective.needs_signals - signals:
            return (
                "objective",
                f"{objective.name} needs {_words(missing)}, which the head {stage.head.name} does not say",
            )
        if objective.needs_teacher and stage.teacher is None:
            return "teacher", f"{objective.name} learns from a teacher: name the stage that teaches"
    if stage.objective and stage.head.needs - fields:
        return "head", f"{stage.head.name} needs {_words(stage.head.needs - fields)}, which no corruption here provides"
    return None


def _words(values: set[Field] | frozenset[Field] | frozenset[Signal]) -> str:
    return ", ".join(sorted(str(value) for value in values))
