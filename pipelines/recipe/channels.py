"""Check the channels of a stage: what its annotations make and from what, and what its backbone reads."""

from __future__ import annotations

import math
from collections import Counter

from pipelines.errors import DataError
from pipelines.parts.annotations import Annotation
from pipelines.parts.heads import Head
from pipelines.recipe.document_texts import check_texts
from pipelines.recipe.problems import Problem, Setting, listed, matching_members
from pipelines.recipe.schema import Stage
from pipelines.task_families import TaskFamily
from pipelines.vocabulary import WORD_STARTS, Channel, numbered_texts


def stage_channels(stage: Stage) -> list[Channel]:
    """The channels alongside the tokens of a stage's rows; word starts and numbers of texts only on plain text."""
    words = [WORD_STARTS] if stage.segmentation is not None and stage.kind.reads_plain_text else []
    texts = numbered_texts(len(stage.texts)) if stage.kind.reads_plain_text else []
    return [*words, *texts, *(channel for one in stage.annotations for channel in one.channels)]


def check_channels(stage: Stage, setting: Setting) -> Problem | None:
    """Check that every channel has one maker, which finds its files and columns, and that the backbone's embeddings
    find their channels."""
    names = Counter(channel.name for channel in stage_channels(stage))
    if twice := next((name for name, count in names.items() if count > 1), None):
        return "annotations", f"two parts of this stage make the channel {twice!r}; keep one"
    return check_texts(stage, setting) or _check_annotations(stage, setting) or _check_embeddings(stage)


def _check_annotations(stage: Stage, setting: Setting) -> Problem | None:
    for one in stage.annotations:
        if missing := next((path for path in one.reads_files if not path.is_file()), None):
            return (
                "annotations",
                f"{one.name}: there is no file {missing}; give a path relative to the current directory, or an "
                "absolute one",
            )
        try:
            one.check_files()
        except DataError as error:
            return "annotations", f"{one.name}: {error}"
        if not stage.kind.reads_plain_text and setting.family is not None:
            family = TaskFamily.model_validate(setting.family)
            if lacking := set(one.columns) - set(family.columns):
                return (
                    "annotations",
                    f"{one.name} reads the columns {listed(one.columns)}, and an example of {family.name} has no "
                    f"{listed(lacking)}, only {listed(family.columns)}; leave the annotation out, or choose a dataset "
                    "that has them",
                )
    return None


def _check_embeddings(stage: Stage) -> Problem | None:
    channels = {channel.name: channel for channel in stage_channels(stage)}
    embeddings = stage.backbone.added_embeddings if stage.backbone is not None else ()
    for one in embeddings:
        channel = channels.get(one.channel)
        if channel is None:
            fits = matching_members(Annotation, lambda annotation, name=one.channel: annotation.makes in (name, ""))
            return (
                "backbone",
                f"the embedding {one.name} reads the channel {one.channel!r}, which no annotation of this stage makes; "
                f"annotations that can: {listed(fits)}",
            )
        if (channel.size is None) is not bool(one.projections):
            does = "projects vectors" if one.projections else "looks whole numbers up"
            has = "a vector for each token" if channel.size is None else "whole numbers"
            return (
                "backbone",
                f"the embedding {one.name} {does}, and the channel {channel.name!r} has {has}; use the annotation that "
                "was written for it",
            )
        if one.value_shape != channel.shape:
            advice = (
                f"give the embedding size: {channel.shape[0]}"
                if channel.size is None
                else "use the annotation that was written for it"
            )
            return (
                "backbone",
                f"the embedding {one.name} reads {_shape(one.value_shape)} for each token, and the channel "
                f"{channel.name!r} has {_shape(channel.shape)}; {advice}",
            )
        if channel.size is not None and channel.size > one.size:
            return (
                "backbone",
                f"the embedding {one.name} has {one.size} rows, and the channel {channel.name!r} values up to "
                f"{channel.size - 1}; give the embedding size: {channel.size}",
            )
    if embeddings and not stage.kind.reads_plain_text and stage.head is not None and not stage.head.annotates:
        fits = matching_members(Head, lambda head: head.annotates)
        return (
            "head",
            f"{stage.head.name} does not put channels alongside the tokens of its examples, and the backbone's "
            f"embedding {embeddings[0].name} reads one; heads that do: {listed(fits)}",
        )
    return None


def _shape(shape: tuple[int, ...]) -> str:
    return f"{math.prod(shape)} numbers" if shape else "one number"
