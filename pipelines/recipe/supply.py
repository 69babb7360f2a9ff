"""Check that every field, tokenizer ability and signal that a part of a stage needs is provided by another part."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from pipelines.parts.corruptions import Corruption
from pipelines.parts.heads import Head
from pipelines.parts.knowledge import Knowledge
from pipelines.parts.layouts import Layout
from pipelines.parts.segmentations import UNSPACED, Segmentation
from pipelines.recipe.channels import stage_channels
from pipelines.recipe.problems import Problem, Setting, listed, matching_members
from pipelines.recipe.schema import Stage
from pipelines.recipe.tables import task_words
from pipelines.recipe.tokenizing import check_tokens
from pipelines.vocabulary import Field, Signal

SEVERAL_TEXTS = "; name the columns that make up a document, as in texts: [text, translation]"


def finds_words(segmentation: type[Segmentation], language: str | None) -> bool:
    """Whether `segmentation` finds the words of `language`; True when the language is unknown."""
    if language is None:
        return True
    return language in segmentation.languages if segmentation.languages is not None else language not in UNSPACED


def architecture_of(stage: Stage) -> object:
    """The architecture that the backbone of `stage` names; None where it names none."""
    return getattr(stage.backbone, "architecture", None)


def check_supply(stage: Stage, setting: Setting) -> Problem | None:
    """Check demand ⊆ supply for batch fields, tokenizer abilities and signals."""
    assert stage.head is not None
    fields = {Field.INPUT_IDS, Field.ORIGINAL_IDS, *(channel.field for channel in stage_channels(stage))}
    if stage.kind.reads_plain_text:
        fields |= {Field.DOCUMENTS, *stage.layout.provides}
        segmenting = next((one.name for one in stage.corruption if one.segments > 1 or one.pairs_segments), None)
        if segmenting is not None and stage.layout.provides:
            fits = matching_members(Layout, lambda layout: not layout.provides)
            why = "continue from batch to batch" if Field.MEMORY in stage.layout.provides else "hold several documents"
            return (
                "layout",
                f"{segmenting} splits windows into segments, but rows of {stage.layout.name} {why}; use {listed(fits)}",
            )
    else:
        fields |= {Field.ATTENTION_MASK, *stage.head.needs}
        if stage.knowledge is not None:
            fields |= stage.knowledge.provides
        if len(task_words(stage.corpus, setting)) == len(stage.corpus):
            fields |= stage.head.labels
        if stage.corruption:
            return "corruption", "corruptions apply to plain text only; for a stage on labelled data set corruption: []"
    for corruption in stage.corruption:
        if lacking := corruption.needs - fields:
            offers = _providing(lacking) + [
                f"segmentation: {name}"
                for name in matching_members(
                    Segmentation, lambda one: lacking <= one.provides and finds_words(one, setting.language)
                )
            ]
            return (
                "corruption",
                f"{corruption.name} needs {listed(lacking)}, which no part before it provides{_hint(offers)}"
                f"{SEVERAL_TEXTS if Field.TEXTS in lacking else ''}",
            )
        if unfit := check_tokens(stage, corruption.name, corruption.needs_tokens):
            return "corruption", unfit
        provided = (corruption.provides - corruption.may_read) & stage.layout.provides
        if Field.DOCUMENT_STARTS in fields and provided:
            return (
                "corruption",
                f"{corruption.name} provides {listed(provided)}, which layout {stage.layout.name} provides already",
            )
        fields = (fields - corruption.replaces) | corruption.provides
    scored = getattr(stage.head, "classes", None)  # where that is an option of the head
    if beyond := next((one for one in stage.corruption if scored and getattr(one, "classes", 0) > scored), None):
        number = getattr(beyond, "classes", 0)
        return (
            "head",
            f"{beyond.name} labels {number} classes, and {stage.head.name} scores {scored}: set classes: {number}",
        )
    pooling, recorded = (getattr(stage.head, "pooling", None), getattr(architecture_of(stage), "poolings", None))
    if pooling is not None and recorded is not None and pooling not in recorded:
        assert stage.backbone is not None  # it has the architecture
        return "head", f"{stage.backbone.label} cannot record the pooling {pooling}; choose {listed(recorded)}"
    if stage.backbone and (unfit := check_tokens(stage, stage.backbone.name, stage.backbone.needs_tokens)):
        return "backbone", unfit
    if unfit := check_tokens(stage, stage.head.name, stage.head.needs_tokens):
        return "head", unfit
    demands = []
    for objective in stage.objective:
        demands.append(("objective", objective.name, objective.needs_fields))
        for name in objective.companion_heads:
            companion = Head.model_validate(name)
            demands.append(("objective", f"{objective.name}'s {name}", companion.needs))
    if stage.objective:
        demands.append(("head", stage.head.name, stage.head.needs - {Field.MEMORY}))
    if stage.attention is not None:
        demands.append(("attention", stage.attention.name, stage.attention.needs))
    for key, name, needed in demands:
        if lacking := needed - fields:
            offers = _providing(lacking) if stage.kind.reads_plain_text else _labelling(lacking)
            return key, f"{name} needs {listed(lacking)}, which no part of this stage provides{_hint(offers)}"
    for objective in stage.objective:
        if lacking_signals := objective.required_signals - stage.head.provides:
            providers = matching_members(Head, partial(_provides, lacking_signals))
            return (
                "objective",
                f"{objective.name} needs {listed(lacking_signals)}, which the head {stage.head.name} does not provide; "
                f"heads that do: {listed(providers)}",
            )
        if objective.needs_teacher and stage.teacher is None:
            return "teacher", f"{objective.name} learns from a teacher: name the teacher stage"
    return None


def _provides(signals: frozenset[Signal], head: type[Head]) -> bool:
    return signals <= head.provides


def _hint(offers: list[str]) -> str:
    return f"; parts that do: {', '.join(offers)}" if offers else ""


def _providing(lacking: Iterable[Field]) -> list[str]:
    """Names of the corruptions that provide the fields `lacking`."""
    needed = set(lacking)
    return matching_members(Corruption, lambda corruption: needed <= corruption.provides)


def _labelling(lacking: Iterable[Field]) -> list[str]:
    """Names of the heads whose encoding, and of the knowledge that adds the fields `lacking` to a labelled batch."""
    needed = set(lacking)
    injecting = matching_members(Knowledge, lambda knowledge: needed <= knowledge.provides)
    return matching_members(Head, lambda head: needed <= head.labels) + [f"knowledge: {name}" for name in injecting]
