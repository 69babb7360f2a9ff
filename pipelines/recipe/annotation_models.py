"""Check that a stage can read the networks that its annotations name."""

from __future__ import annotations

from collections.abc import Callable

from pipelines.judging.attacks import ModelAttack
from pipelines.judging.attacks.word_tables import WordTableAttack
from pipelines.parts.annotations import ModelAnnotation
from pipelines.parts.heads import Head
from pipelines.parts.tokenizers import Tokenizer
from pipelines.recipe.lines import line_views
from pipelines.recipe.model_annotations import model_annotations
from pipelines.recipe.problems import Problem, listed, matching_members
from pipelines.recipe.schema import Stage
from pipelines.vocabulary import Ability, Signal

NEEDED = frozenset({Ability.ONE_STACK})


def check_annotation_models(stage: Stage, resolve: Callable[[str], Stage]) -> Problem | None:
    """First problem of the networks that the annotations and augmentations of a stage read; None when there is none."""
    for _, key, annotation in model_annotations(stage):
        if problem := _problem(annotation, resolve):
            return key, f"{annotation.name}: {problem}"
    for one in stage.augmentation:
        if isinstance(one.attack, ModelAttack) and (problem := _unread(one.attack, resolve)):
            return "augmentation", f"{one.attack.name}: {problem}"
    return None


def _unread(attack: ModelAttack, resolve: Callable[[str], Stage]) -> str | None:
    """Why an attack cannot read the stage that it names; None if it can."""
    return _no_words(attack, resolve) if isinstance(attack, WordTableAttack) else _no_masked_lm(attack, resolve)


def _no_words(attack: WordTableAttack, resolve: Callable[[str], Stage]) -> str | None:
    if not attack.from_:
        return "name the stage whose words and vectors are read: from: <stage>"
    read = resolve(attack.from_)
    if read.backbone is None or read.tokenizer is None:
        return None
    if Ability.STATIC not in read.backbone.offers:
        fits = ", ".join(read.backbone.names_offering(frozenset({Ability.STATIC})))
        return (
            f"from: {attack.from_} is a {read.backbone.label}, not one vector for each word; backbones that are: {fits}"
        )
    if "counts" not in read.tokenizer.offers:
        fits = listed(matching_members(Tokenizer, lambda one: "counts" in one.offers))
        return (
            f"from: {attack.from_} counts no words, its tokenizer is {read.tokenizer.name}; tokenizers that do: {fits}"
        )
    return None


def _no_masked_lm(attack: ModelAttack, resolve: Callable[[str], Stage]) -> str | None:
    if not attack.from_:
        return "name the stage whose masked language model is read: from: <stage>"
    heads = [view.head for view in line_views(resolve(attack.from_)).values() if view.head is not None]
    if any(Signal.MASKED_LOGITS in head.provides for head in heads[:1]):
        return None
    fits = matching_members(Head, lambda head: Signal.MASKED_LOGITS in head.provides)
    stated = f"its head is {heads[0].name}" if heads else "it has no head"
    return (
        f"from: {attack.from_} predicts no masked tokens, {stated}; name a stage with one of the heads {listed(fits)}"
    )


def _problem(annotation: ModelAnnotation, resolve: Callable[[str], Stage]) -> str | None:
    if annotation.folder:
        return "folder is part of saved models; leave it out, and name the stage whose network is read: from: <stage>"
    if not annotation.from_:
        return "name the stage whose network is read: from: <stage>"
    read, name = resolve(annotation.from_), f"from: {annotation.from_}"
    if read.kind.judges:
        return f"{name} is an {read.kind} stage, which makes no network; name one that trains"
    if read.backbone is None:
        return None
    if not read.backbone.offers >= NEEDED:
        fits = ", ".join(read.backbone.names_offering(NEEDED))
        return (
            f"{name} is a {read.backbone.label}, which has no state of its own for each token; backbones that do: "
            f"{fits}"
        )
    if read.backbone.added_embeddings or read.features:
        reads = "channels" if read.backbone.added_embeddings else "features"
        return f"{name} reads {reads} itself, and an annotation gives it a text alone; name a stage without {reads}"
    return None
