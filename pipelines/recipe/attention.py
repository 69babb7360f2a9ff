"""Check that a stage's attention pattern and its knowledge fit each other, the backbone and what the stage does."""

from __future__ import annotations

from collections.abc import Callable

from pipelines.parts.attention import AttentionPattern
from pipelines.recipe.problems import Problem, listed, matching_members
from pipelines.recipe.schema import Stage
from pipelines.vocabulary import Field


def check_attention(stage: Stage, resolve: Callable[[str], Stage]) -> Problem | None:
    """First problem of the attention pattern and the knowledge of `stage`; whether the pattern's fields are provided is
    checked with those of all parts."""
    return (
        _check_knowledge(stage)
        or _check_own(stage)
        or _check_pattern(stage)
        or _check_teacher(stage, resolve)
        or _check_features(stage, resolve)
    )


def _check_knowledge(stage: Stage) -> Problem | None:
    knowledge = stage.knowledge
    if knowledge is None:
        return None
    if stage.kind.reads_plain_text:
        return (
            "knowledge",
            f"{knowledge.name} is injected into labelled examples, and this stage reads plain text; give it to the "
            "finetune stage",
        )
    if stage.attention is None or not knowledge.provides & stage.attention.needs:
        fits = matching_members(AttentionPattern, lambda pattern: bool(knowledge.provides & pattern.needs))
        return (
            "knowledge",
            f"{knowledge.name} injects tokens, and no attention pattern says which tokens attend to them; set "
            f"attention: {listed(fits)}",
        )
    if knowledge.missing is not None:
        return "knowledge", f"{knowledge.name}: {knowledge.missing}"
    return None


def _check_own(stage: Stage) -> Problem | None:
    """Check that one part decides which tokens attend to which: a pattern, or the head in the rows that it encodes."""
    if stage.attention is None or stage.head is None or not _decides(stage):
        return None
    return (
        "attention",
        f"{stage.head.name} decides itself which tokens of its rows attend to which; leave {stage.attention.name} out",
    )


def _check_pattern(stage: Stage) -> Problem | None:
    pattern = stage.attention
    if stage.backbone is None:
        return None
    if pattern is not None and pattern.needs_abilities - stage.backbone.offers:
        return (
            "attention",
            f"{pattern.name} decides for every pair of tokens whether one attends to the other, which the attention of "
            f"this backbone ({stage.backbone.label}) cannot be restricted to; backbones that fit: "
            f"{', '.join(stage.backbone.names_offering(pattern.needs_abilities)) or 'none'}",
        )
    converting = next((one.name for one in stage.compression if one.replaces_weights), None)
    if converting is not None and (trained := _restriction(stage)):
        return (
            "compression",
            f"{converting} writes a network that reads tokens and their mask alone, and this one is trained with "
            f"{trained}; compress it by another method, or train without the pattern",
        )
    return None


def _restriction(stage: Stage) -> str | None:
    """What lets tokens of a stage's rows attend to some tokens only; None where nothing does."""
    if stage.attention is not None and stage.attention.needs_abilities:
        return f"attention: {stage.attention.name}"
    return f"head: {stage.head.name}" if _decides(stage) and stage.head is not None else None


def _decides(stage: Stage) -> bool:
    """Whether the head decides in the rows that it encodes which tokens attend to which."""
    return stage.head is not None and Field.VISIBLE in stage.head.needs


def _check_teacher(stage: Stage, resolve: Callable[[str], Stage]) -> Problem | None:
    if stage.teacher is None:
        return None
    teacher = resolve(stage.teacher)
    if (teacher.attention, teacher.knowledge) == (stage.attention, stage.knowledge):
        return None
    own, other = (_described(one) for one in (stage, teacher))
    return "teacher", f"{stage.teacher} reads its rows with {other}, and this stage with {own}; let both read alike"


def _check_features(stage: Stage, resolve: Callable[[str], Stage]) -> Problem | None:
    for source in (one for one in stage.features if one.from_):
        read = resolve(source.from_)
        if read.attention is not None and read.attention.needs_abilities:
            return (
                "features",
                f"from: {source.from_} reads its rows with {_described(read)}, and features are those of whole texts; "
                "name a stage without a pattern",
            )
    return None


def _described(stage: Stage) -> str:
    parts = [f"{key} {part.name}" for key in ("attention", "knowledge") if (part := getattr(stage, key)) is not None]
    return " and ".join(parts) or "no attention pattern"
