"""Do the parts of a stage meet? Whatever can be refused is refused here, before anything computes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from pipelines.errors import RecipeError
from pipelines.parts.backbones import Backbone
from pipelines.parts.corruptions import Corruption
from pipelines.parts.heads import Head
from pipelines.parts.layouts import Layout
from pipelines.parts.segmentations import UNSPACED, Segmentation
from pipelines.parts.strategies import Strategy, conflict
from pipelines.recipe.checkpoint import backbone_of
from pipelines.recipe.judging import check_judging
from pipelines.recipe.kinds import Kind
from pipelines.recipe.probing import check_probing
from pipelines.recipe.problems import Problem, listed, matching_members
from pipelines.recipe.schema import Stage
from pipelines.recipe.starts import Checkpoint, Untrained
from pipelines.recipe.tokenizing import check_tokens, check_vocabulary
from pipelines.task_families import TaskFamily
from pipelines.task_families.encoding import MULTIPLE
from pipelines.vocabulary import Field, Signal


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
        return check_judging(stage, resolve, setting.family, setting.language)
    if stage.kind is Kind.PROBE:
        return check_probing(stage, resolve, setting.family)
    return (
        _check_start(stage, resolve)
        or _check_corpus(stage)
        or check_vocabulary(stage)
        or _check_parts(stage)
        or _check_task(stage, setting)
        or _check_body(stage)
        or _checklisted(stage, setting)
        or _check_supply(stage, setting)
    )


def _check_start(stage: Stage, resolve: Callable[[str], Stage]) -> Problem | None:
    if isinstance(stage.start, tuple):
        return "start", "only an evaluate or a probe stage starts from several others"
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
    elif isinstance(stage.start, Checkpoint) and stage.backbone is not None:
        try:
            held = backbone_of(stage.start.checkpoint)
        except RecipeError as error:
            return "start", str(error)
        if (held.described, held.longest) != (stage.backbone.described, stage.backbone.longest):
            return (
                "backbone",
                f"the checkpoint holds another body: {_size(held)}, and this is {_size(stage.backbone)}; leave backbone out",
            )
    if stage.teacher is not None:
        resolve(stage.teacher)
    return None


def _size(body: Backbone) -> str:
    return f"{body.described}, {body.longest or 'any number of'} positions"


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
        return (
            "strategy",
            f"a stage that trains needs a strategy; known: {listed(matching_members(Strategy, lambda _: True))}",
        )
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
        fits = matching_members(Head, lambda head: not head.reads)
        return (
            "head",
            f"{stage.head.name} reads labelled examples, this stage reads plain text; heads that do: {listed(fits)}",
        )
    if stage.kind.reads_plain_text:
        return None
    if not stage.head.reads:
        fits = matching_members(Head, lambda head: setting.family in head.reads if setting.family else bool(head.reads))
        return "head", f"{stage.head.name} reads plain text and answers no task; heads that do: {listed(fits)}"
    if "task_text" in stage.corpus and setting.family is not None:
        family = TaskFamily.model_validate(setting.family)
        if not family.is_single_text:
            return "corpus", f"task_text is no example of {family.name} without its answer; leave corpus: task"
    if setting.family is not None and setting.family in stage.head.reads:
        unfit = stage.head.unfit(TaskFamily.model_validate(setting.family))
        return ("head", f"{stage.head.name}, {unfit}") if unfit else None
    if setting.family is not None:
        fits = matching_members(Head, lambda head: setting.family in head.reads)
        return (
            "head",
            f"{stage.head.name} answers {listed(stage.head.reads)}, and this dataset is {setting.family}; heads that "
            f"fit: {listed(fits)}",
        )
    return None


def _check_body(stage: Stage) -> Problem | None:
    """The head's demands on the body, and the length of its rows."""
    if stage.backbone is None or stage.head is None:  # it starts from another recipe's stage
        return None
    if lacking := stage.head.needs_abilities - stage.backbone.offers:
        return (
            "head",
            f"{stage.head.name} needs a body that is {listed(lacking)}, and this one ({stage.backbone.described}) is "
            f"{listed(stage.backbone.offers)}; bodies that fit: {', '.join(stage.backbone.fitting(stage.head.needs_abilities))}",
        )
    if stage.kind.reads_plain_text and (lacking := stage.layout.needs_abilities - stage.backbone.offers):
        return (
            "layout",
            f"{stage.layout.name} needs a body that is {listed(lacking)}, and this one ({stage.backbone.described}) is not; "
            f"bodies that fit: {', '.join(stage.backbone.fitting(stage.layout.needs_abilities))}",
        )
    for objective in stage.objective:
        for signal in sorted(objective.needs_signals):
            ability = stage.head.needs_ability_for.get(signal)
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


def _checklisted(stage: Stage, setting: Setting) -> Problem | None:
    """The segmentation finds the words of the dataset's language."""
    if stage.segmentation is None or setting.language is None:
        return None
    if _finds_words(type(stage.segmentation), setting.language):
        return None
    found = stage.segmentation.languages
    finds = listed(found) if found is not None else "languages written with spaces"
    fits = matching_members(Segmentation, lambda one: _finds_words(one, setting.language))
    return (
        "segmentation",
        f"{stage.segmentation.name} finds the words of {finds}, and this dataset's language is {setting.language}; what "
        f"would fit: {listed(fits)}",
    )


def _finds_words(segmentation: type[Segmentation], language: str | None) -> bool:
    if language is None:
        return True
    return language in segmentation.languages if segmentation.languages is not None else language not in UNSPACED


def _check_supply(stage: Stage, setting: Setting) -> Problem | None:
    """Demand ⊆ supply, for fields, for what a tokenizer has, and for signals."""
    assert stage.head is not None
    fields = {Field.INPUT_IDS, Field.ORIGINAL_IDS}
    if stage.kind.reads_plain_text:
        fields |= {Field.DOCUMENTS, *stage.layout.provides}
        if stage.segmentation is not None:
            fields |= stage.segmentation.provides
        pieces = next((one.name for one in stage.corruption if one.segments > 1), None)
        if pieces is not None and stage.layout.provides:
            fits = matching_members(Layout, lambda layout: not layout.provides)
            why = "go on from batch to batch" if Field.MEMORY in stage.layout.provides else "hold several documents"
            return (
                "layout",
                f"{pieces} cuts windows in pieces, and {stage.layout.name} rows {why}; use {listed(fits)}",
            )
    else:
        fields |= {Field.ATTENTION_MASK, *stage.head.needs}
        if stage.corpus == ("task",):
            fields |= stage.head.labels
        if stage.corruption:
            return "corruption", "corruptions change plain text; a stage on labels has none: corruption: []"
    for corruption in stage.corruption:
        if lacking := corruption.needs - fields:
            offers = _providing(lacking) + [
                f"segmentation: {name}"
                for name in matching_members(
                    Segmentation, lambda one: lacking <= one.provides and _finds_words(one, setting.language)
                )
            ]
            return (
                "corruption",
                f"{corruption.name} needs {listed(lacking)}, which nothing before it provides{_hint(offers)}",
            )
        if unfit := check_tokens(stage, corruption.name, corruption.needs_tokens):
            return "corruption", unfit
        if Field.DOCUMENT_STARTS in fields and (said := corruption.provides & stage.layout.provides):
            return "corruption", f"{corruption.name} says {listed(said)}, which layout {stage.layout.name} says already"
        fields = (fields - corruption.replaces) | corruption.provides
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
    for key, name, needed in demands:
        if lacking := needed - fields:
            offers = _providing(lacking) if stage.kind.reads_plain_text else _labelling(lacking)
            return key, f"{name} needs {listed(lacking)}, which nothing here provides{_hint(offers)}"
    for objective in stage.objective:
        if unsaid := objective.needs_signals - stage.head.provides:
            says = matching_members(Head, partial(_says, unsaid))
            return (
                "objective",
                f"{objective.name} needs {listed(unsaid)}, which the head {stage.head.name} does not say; heads that do: "
                f"{listed(says)}",
            )
        if objective.needs_teacher and stage.teacher is None:
            return "teacher", f"{objective.name} learns from a teacher: name the stage that teaches"
    return None


def _says(wanted: frozenset[Signal], head: type[Head]) -> bool:
    return wanted <= head.provides


def _hint(offers: list[str]) -> str:
    return f"; what does: {', '.join(offers)}" if offers else ""


def _providing(lacking: Iterable[Field]) -> list[str]:
    """The corruptions that provide the fields `lacking`."""
    wanted = set(lacking)
    return matching_members(Corruption, lambda corruption: wanted <= corruption.provides)


def _labelling(lacking: Iterable[Field]) -> list[str]:
    """The heads whose encoding adds the fields `lacking` to a labelled batch."""
    wanted = set(lacking)
    return matching_members(Head, lambda head: wanted <= head.labels)
