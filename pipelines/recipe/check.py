"""Check that the parts of a stage fit together, before anything computes."""

from __future__ import annotations

from collections.abc import Callable

from pipelines.parts.backbones import Backbone
from pipelines.parts.heads import Head
from pipelines.parts.segmentations import Segmentation
from pipelines.parts.strategies import Strategy, conflict
from pipelines.recipe.annotation_models import check_annotation_models
from pipelines.recipe.attention import check_attention
from pipelines.recipe.augmenting import check_augmentation
from pipelines.recipe.channels import check_channels
from pipelines.recipe.compressing import check_compression
from pipelines.recipe.corruption_sources import check_corruption_sources
from pipelines.recipe.estimating import check_estimate
from pipelines.recipe.feature_supply import check_features
from pipelines.recipe.head_start import check_head_start
from pipelines.recipe.judging import check_judging
from pipelines.recipe.kinds import Kind
from pipelines.recipe.line_checks import check_lines
from pipelines.recipe.lines import LINE_KEYS, line_views
from pipelines.recipe.optimizing import check_optimizer
from pipelines.recipe.probing import check_probing
from pipelines.recipe.problems import Problem, Setting, listed, matching_members
from pipelines.recipe.schema import Stage
from pipelines.recipe.start_backbones import unlike_checkpoint, unlike_start
from pipelines.recipe.starts import Checkpoint, Untrained
from pipelines.recipe.supply import check_supply, finds_words
from pipelines.recipe.tables import TASK_TEXT, is_task, setting_of, task_words, unknown_word
from pipelines.recipe.teacher_shapes import check_match
from pipelines.recipe.teaching import check_teacher
from pipelines.recipe.token_types import written_types
from pipelines.recipe.tokenizing import check_vocabulary
from pipelines.task_families import TaskFamily
from pipelines.task_families.encoding import MULTIPLE
from pipelines.task_families.labelled_tables import MAIN
from pipelines.vocabulary import Field


def check(stage: Stage, resolve: Callable[[str], Stage], setting: Setting) -> Problem | None:
    """First problem of a stage; None when it is valid. `resolve` returns the stage that a reference names."""
    if unknown := unknown_word(stage.corpus, setting):
        return unknown
    if stage.kind is Kind.EVALUATE:
        return check_judging(stage, resolve, setting)
    if stage.kind is Kind.PROBE:
        return check_probing(stage, resolve, setting_of(stage.corpus, setting).family)
    return (
        check_estimate(stage, resolve)
        or _check_start(stage, resolve)
        or check_lines(stage)
        or check_compression(stage, resolve)
        or _check_views(stage, resolve, setting)
        or check_features(stage, resolve)
        or check_annotation_models(stage, resolve)
        or check_teacher(stage, resolve)
        or check_match(stage, resolve)
    )


def _check_views(stage: Stage, resolve: Callable[[str], Stage], dataset: Setting) -> Problem | None:
    """Check every line as the stage that it would be alone."""
    for name, view in line_views(stage).items():
        setting = setting_of(view.corpus, dataset)
        problem = (
            unknown_word(view.corpus, dataset)
            or _check_corpus(view, setting)
            or check_vocabulary(view)
            or _check_parts(view)
            or _check_task(view, setting)
            or _check_backbone(view)
            or _check_segmentation(view, setting)
            or check_corruption_sources(view, setting)
            or check_channels(view, setting)
            or check_attention(view, resolve)
            or check_augmentation(view, setting, alone=not name)
            or check_supply(view, setting)
        )
        if problem is not None:
            key, message = problem
            return (f"lines.{name}.{key}" if name and key in LINE_KEYS else key), message
    return None


def _check_start(stage: Stage, resolve: Callable[[str], Stage]) -> Problem | None:
    if isinstance(stage.start, tuple):
        return "start", "only an evaluate or a probe stage starts from several stages"
    if stage.start is None and stage.kind not in (Kind.PRETRAIN, Kind.FINETUNE):
        return "start", f"a {stage.kind} stage continues another stage: name the stage it starts from"
    if stage.start is None and (stage.tokenizer is None or stage.backbone is None):
        missing = "tokenizer" if stage.tokenizer is None else "backbone"
        either = "" if stage.kind is Kind.PRETRAIN else "name the stage it starts from; "
        return missing, f"{either}a stage that starts from nothing needs a tokenizer and a backbone"
    start = stage.start.untrained if isinstance(stage.start, Untrained) else stage.start
    if isinstance(start, str):
        if (before := resolve(start)).kind.judges:
            return "start", f"stage {start!r} is of kind {before.kind} and produces no model; name a stage that does"
        if problem := check_head_start(stage, resolve) or unlike_start(stage, before.backbone):
            return problem
    elif isinstance(start, Checkpoint) and stage.kind is not Kind.PRETRAIN and not _is_finished(stage):
        return (
            "start",
            "only a pretrain stage starts from a checkpoint, or a finetune stage with budget: {tokens: 0}, which takes "
            "a classifier over as it is; let this stage start from that pretrain stage",
        )
    elif isinstance(start, Checkpoint) and (problem := unlike_checkpoint(stage, start)):
        return problem
    for teacher in dict.fromkeys(view.teacher for view in line_views(stage).values()):
        if teacher is not None:
            resolve(teacher)
    return None


def _is_finished(stage: Stage) -> bool:
    """Whether a stage takes a model over as it is, and answers the task with it."""
    return stage.kind is Kind.FINETUNE and stage.budget.tokens == 0


def _check_corpus(stage: Stage, setting: Setting) -> Problem | None:
    if not stage.corpus:
        return "corpus", "name the corpora that this stage reads: general, domain, task_text or task"
    if stage.kind.reads_plain_text:
        labelled = next((word for word in stage.corpus if is_task(word, setting)), None)
        text = "for its text without labels, use task_text" if labelled == MAIN else "this stage reads plain text"
        return None if labelled is None else ("corpus", f"{labelled!r} is labelled data; {text}")
    tasks = task_words(stage.corpus, setting)
    if stage.kind is Kind.FINETUNE and (len(stage.corpus) != 1 or not tasks):
        return "corpus", f"a finetune stage reads labels: corpus: task{_named_tasks(setting)}"
    if len(tasks) > 1:
        return "corpus", f"a stage answers one task, but {' and '.join(tasks)} are two; give each a stage of its own"
    if TASK_TEXT in stage.corpus and tasks and tasks[0] != MAIN:
        return "corpus", f"task_text is text of the main task, not of {tasks[0]!r}; use corpus: {tasks[0]}"
    return None


def _named_tasks(setting: Setting) -> str:
    return f", or one of the dataset's named tasks: {listed(setting.tasks)}" if setting.tasks else ""


def _check_parts(stage: Stage) -> Problem | None:
    if stage.head is None:
        return "head", "a stage that trains needs a head"
    computed = stage.objective or stage.estimate is not None
    if stage.kind is not Kind.COMPRESS and not computed and stage.budget.tokens != 0:
        return "objective", "a stage that trains needs an objective"
    if stage.trains and not stage.strategy:
        return (
            "strategy",
            f"a stage that trains needs a strategy; known: {listed(matching_members(Strategy, lambda _: True))}",
        )
    if impossible := conflict(stage.strategy):
        return "strategy", impossible
    if stage.trains and (unfit := check_optimizer(stage)):
        return unfit
    if stage.trains and stage.budget.tokens is None and stage.budget.epochs is None:
        return "budget", "give tokens or epochs"
    if stage.kind is Kind.FINETUNE and stage.budget.epochs is None and not _is_finished(stage):
        return "budget", "a finetune stage counts in epochs"
    if stage.kind is Kind.COMPRESS and not stage.compression:
        return "compression", "a compress stage needs at least one compression"
    return None


def _check_task(stage: Stage, setting: Setting) -> Problem | None:
    """Check that the head reads what the stage reads: examples of the task family, or plain text."""
    assert stage.head is not None
    if stage.kind.reads_plain_text and stage.head.reads:
        fits = matching_members(Head, lambda head: not head.reads)
        return (
            "head",
            f"{stage.head.name} reads labelled examples, but this stage reads plain text; heads for plain text: "
            f"{listed(fits)}",
        )
    if stage.kind.reads_plain_text:
        return None
    if not stage.head.reads:
        fits = matching_members(Head, lambda head: setting.family in head.reads if setting.family else bool(head.reads))
        return "head", f"{stage.head.name} reads plain text and cannot answer a task; heads that do: {listed(fits)}"
    if "task_text" in stage.corpus and setting.family is not None:
        family = TaskFamily.model_validate(setting.family)
        if not family.is_single_text:
            return (
                "corpus",
                f"the text of a {family.name} example is no training example without its answer; use corpus: task",
            )
    if setting.family is not None and setting.family in stage.head.reads:
        unfit = stage.head.unfit(TaskFamily.model_validate(setting.family))
        return ("head", f"{stage.head.name}, {unfit}") if unfit else None
    if setting.family is not None:
        fits = matching_members(Head, lambda head: setting.family in head.reads)
        return (
            "head",
            f"{stage.head.name} answers {listed(stage.head.reads)}, but this dataset is {setting.family}; heads that "
            f"fit: {listed(fits)}",
        )
    return None


def _check_backbone(stage: Stage) -> Problem | None:
    """Check what head, layout and objectives need of the backbone, and that it has positions for the rows."""
    if stage.backbone is None or stage.head is None:  # the stage starts from a stage of another recipe
        return None
    if lacking := stage.head.required_abilities - stage.backbone.offers:
        return (
            "head",
            f"{stage.head.name} needs a backbone that is {listed(lacking)}, and this one ({stage.backbone.label}) "
            "is "
            f"{listed(stage.backbone.offers)}; backbones that fit: "
            f"{', '.join(stage.backbone.names_offering(stage.head.required_abilities))}",
        )
    if stage.kind.reads_plain_text and (lacking := stage.layout.needs_abilities - stage.backbone.offers):
        return (
            "layout",
            f"{stage.layout.name} needs a backbone that is {listed(lacking)}, and this one "
            f"({stage.backbone.label}) "
            f"is not; backbones that fit: {', '.join(stage.backbone.names_offering(stage.layout.needs_abilities))}",
        )
    for objective in stage.objective:
        for signal in sorted(objective.required_signals):
            ability = stage.head.needs_ability_for.get(signal)
            if ability is not None and ability not in stage.backbone.offers:
                fits = ", ".join(stage.backbone.names_offering(frozenset({ability})))
                return (
                    "objective",
                    f"{objective.name} needs {signal}, which {stage.head.name} provides on a backbone that is "
                    f"{ability}, "
                    f"and this one ({stage.backbone.label}) is not; backbones that fit: {fits}",
                )
    types = stage.backbone.token_types
    if beyond := next((one for one in written_types(stage) if one[2] > types), None):
        key, part, number = beyond
        return (
            key,
            f"{part} writes {number} token types, and the backbone ({stage.backbone.label}) has {types}; raise "
            "backbone.dims.type_vocab_size, or use smaller types",
        )
    if unfit := _check_positions(stage, stage.backbone):
        return "corruption", unfit
    # rows of labelled examples are padded to a multiple
    width = stage.budget.length if stage.kind.reads_plain_text else -(-stage.budget.length // MULTIPLE) * MULTIPLE
    if stage.backbone.max_length is not None and width > stage.backbone.max_length:
        return (
            "budget",
            f"length: rows of {width} tokens do not fit the {stage.backbone.max_length} positions of the "
            "backbone; raise backbone.positions or lower length",
        )
    return None


def _check_positions(stage: Stage, backbone: Backbone) -> str | None:
    """Check that the backbone has the positions that a corruption gives its tokens."""
    for corruption in stage.corruption:
        if Field.POSITION_IDS not in corruption.provides:
            continue
        if backbone.max_length is None:
            members = [member for _, member in sorted(Backbone.members.items()) if issubclass(member, Backbone)]
            fits = [one.label for member in members for one in member.variants() if one.max_length is not None]
            return (
                f"{corruption.name} changes the positions of tokens, and this backbone ({backbone.label}) has no table "
                f"of positions; leave it out, or use a backbone with one: {', '.join(fits)}"
            )
        beyond = getattr(corruption, "positions", 0)
        if beyond > backbone.max_length:
            return (
                f"{corruption.name} counts up to {beyond:,} positions, and the backbone has {backbone.max_length:,}; "
                "raise backbone.positions or lower positions"
            )
    return None


def _check_segmentation(stage: Stage, setting: Setting) -> Problem | None:
    """Check that the segmentation finds the words of the dataset's language."""
    if stage.segmentation is None or setting.language is None:
        return None
    if finds_words(type(stage.segmentation), setting.language):
        return None
    languages = stage.segmentation.languages
    known = listed(languages) if languages is not None else "languages written with spaces"
    fits = matching_members(Segmentation, lambda one: finds_words(one, setting.language))
    return (
        "segmentation",
        f"{stage.segmentation.name} segments {known}, but this dataset's language is {setting.language}; segmentations "
        f"that fit: {listed(fits)}",
    )
