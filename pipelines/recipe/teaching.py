"""Check that a teacher reads the tokens of its student."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from pipelines.parts.heads import Head
from pipelines.parts.tokenizers import Tokenizer
from pipelines.recipe.lines import line_views
from pipelines.recipe.problems import Problem, listed, matching_members
from pipelines.recipe.schema import NewWords, Stage
from pipelines.recipe.starts import Checkpoint, Untrained
from pipelines.recipe.teacher_signals import signals_of_teacher
from pipelines.vocabulary import PER_ITEM


class LearnedVocabulary(NamedTuple):
    """A vocabulary, as far as a recipe determines it."""

    tokenizer: Tokenizer
    texts: tuple[tuple[str, tuple[str, ...]], ...]
    """Corpora, and columns of each, that it was learned from."""
    added: tuple[tuple[NewWords, tuple[str, ...]], ...] = ()
    """Words that were added to it later, and the corpora that they are from."""

    def __str__(self) -> str:
        options = ", ".join(
            f"{key}: {value}" for key, value in self.tokenizer.model_dump(exclude_defaults=True).items()
        )
        result = f"{{{options}}} learned from {' and '.join(word for word, _ in self.texts)}"
        return result + "".join(f", with {words.tokens:,} words of {' and '.join(of)}" for words, of in self.added)


def check_teacher(stage: Stage, resolve: Callable[[str], Stage]) -> Problem | None:
    """Check that every teacher of a stage has its vocabulary; what a recipe cannot know is compared before training."""
    for name, view in line_views(stage).items():
        line = f"lines.{name}." if name else ""
        if view.teacher is None and view.teacher_vocabulary is not None:
            return (
                f"{line if name and stage.lines[name].teacher_vocabulary else ''}teacher_vocabulary",
                "this maps the tokens of a teacher, and there is none; name the teacher stage, or remove it",
            )
        if view.teacher is None:
            continue
        if view.teacher_vocabulary == "own_tokens" and (unaligned := _check_own_tokens(view, resolve(view.teacher))):
            key, message = unaligned
            return f"{line if name and getattr(stage.lines[name], key) else ''}{key}", message
        if view.teacher_vocabulary == "shared_tokens":
            continue
        if (problem := _check_signals(view, resolve(view.teacher))) is not None:
            return problem
        if view.teacher_vocabulary is not None:
            continue
        own, other = (
            learned_vocabulary(stage, resolve),
            learned_vocabulary(resolve(view.teacher), resolve, view.teacher),
        )
        if own is not None and other is not None and own != other:
            return (
                f"{line if name and stage.lines[name].teacher else ''}teacher",
                f"{view.teacher} reads tokens of {other}, and this stage those of {own}: the same ids are other words; "
                "let both start from one stage, or learn one tokenizer from the same corpus, or set "
                "teacher_vocabulary: shared_tokens, or own_tokens for labelled examples",
            )
    return None


def _check_own_tokens(stage: Stage, teacher: Stage) -> Problem | None:
    """Check that a stage and a teacher that reads tokens of its own have rows that stand for the same examples."""
    if stage.kind.reads_plain_text:
        return (
            "teacher_vocabulary",
            "own_tokens: rows of plain text are windows of the student's tokens, of which the teacher has no rows; use "
            "shared_tokens, or labelled examples",
        )
    heads = [view.head for view in line_views(teacher).values() if view.head is not None]
    if heads and not any(head.reads for head in heads):
        fits = matching_members(Head, lambda head: bool(head.reads) and bool(head.provides & PER_ITEM))
        return (
            "teacher",
            f"{stage.teacher} is to read examples in tokens of its own, and its head {heads[0].name} reads plain text; "
            f"name a stage with one of the heads {listed(fits)}",
        )
    for objective in stage.objective:
        if objective.needs_teacher and (lacking := signals_of_teacher(objective) - PER_ITEM):
            return (
                "objective",
                f"{objective.name} matches {listed(lacking)} token by token, and with teacher_vocabulary: own_tokens "
                f"the teacher has other tokens; what it says of whole examples can be matched: {listed(PER_ITEM)}",
            )
    return None


def _check_signals(stage: Stage, teacher: Stage) -> Problem | None:
    """Check that a teacher is a model whose head provides what the student is to match."""
    if teacher.kind.judges:
        return "teacher", f"{stage.teacher} is of kind {teacher.kind} and produces no model; name a stage that does"
    heads = [view.head for view in line_views(teacher).values() if view.head is not None]
    for objective in stage.objective:
        read = signals_of_teacher(objective)
        lacking = read - {signal for head in heads for signal in head.provides}
        if objective.needs_teacher and heads and lacking:
            fits = matching_members(Head, lambda head, needed=read: needed <= head.provides)
            return (
                "teacher",
                f"{objective.name} matches {listed(lacking)}, which {stage.teacher} does not provide with its head "
                f"{heads[0].name}; name a stage with one of the heads {listed(fits)}",
            )
        if teacher.backbone is None:
            continue
        for head, signal in ((head, signal) for head in heads for signal in sorted(read)):
            ability = head.needs_ability_for.get(signal)
            if objective.needs_teacher and ability is not None and ability not in teacher.backbone.offers:
                return (
                    "teacher",
                    f"{objective.name} matches {signal}, which {head.name} provides on a backbone that is {ability}, "
                    f"and that of {stage.teacher} ({teacher.backbone.label}) is not; backbones that fit: "
                    f"{', '.join(teacher.backbone.names_offering(frozenset({ability})))}",
                )
    return None


def learned_vocabulary(stage: Stage, resolve: Callable[[str], Stage], reference: str = "") -> LearnedVocabulary | None:
    """The vocabulary of a stage that `reference` names; None if it comes with a checkpoint."""
    views = line_views(stage).values()
    start = stage.start.untrained if isinstance(stage.start, Untrained) else stage.start
    if isinstance(start, str):
        owner = reference.rpartition("/")[0]
        origin = f"{owner}/{start}" if owner and "/" not in start else start
        known = learned_vocabulary(resolve(origin), resolve, origin)
        if known is None or stage.vocabulary is None:
            return known
        words = tuple(dict.fromkeys(word for view in views for word in view.corpus))
        return known._replace(added=(*known.added, (stage.vocabulary, words)))
    if isinstance(start, Checkpoint) or stage.tokenizer is None:
        return None
    return LearnedVocabulary(stage.tokenizer, tuple((word, view.texts) for view in views for word in view.corpus))
