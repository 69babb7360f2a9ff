"""Annotations and augmentations of a stage that read the networks of other stages: their roles among its parents, and
their models."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, cast

from pipelines.parts.annotations import Annotation, ModelAnnotation

if TYPE_CHECKING:
    from pipelines.judging.attacks import ModelAttack
    from pipelines.recipe.schema import Stage


def model_annotations(stage: Stage) -> Iterator[tuple[str, str, ModelAnnotation]]:
    """Role of the model that is read, among the parents of a step, key of the stage, and annotation, of each."""
    for key, prefix, written in _written(stage):
        for number, one in enumerate(written):
            if isinstance(one, ModelAnnotation):
                yield f"{prefix}:{number}", key, one


def read_models(stage: Stage) -> Iterator[tuple[str, str, ModelAnnotation | ModelAttack]]:
    """The same of every part that reads a model, augmentations after annotations."""
    yield from model_annotations(stage)
    for number, one in enumerate(stage.augmentation):
        if one.attack.reads_model:
            yield f"augmentation:{number}", "augmentation", cast("ModelAttack", one.attack)


def with_augmentation_models(stage: Stage, folder: Callable[[str], Path]) -> Stage:
    """`stage`, each of whose augmentations with a role reads the model in the folder of that role."""
    changed = tuple(
        one.model_copy(update={"attack": cast("ModelAttack", one.attack).reading(folder(f"augmentation:{number}"))})
        if one.attack.reads_model
        else one
        for number, one in enumerate(stage.augmentation)
    )
    return stage.model_copy(update={"augmentation": changed})


def with_models(stage: Stage, reading: Callable[[str, ModelAnnotation], Annotation]) -> Stage:
    """`stage`, each of whose annotations with a role of `model_annotations` is what `reading` makes of it."""

    def read(prefix: str, written: tuple[Annotation, ...]) -> tuple[Annotation, ...]:
        return tuple(
            reading(f"{prefix}:{number}", one) if isinstance(one, ModelAnnotation) else one
            for number, one in enumerate(written)
        )

    own = {prefix: read(prefix, written) for _, prefix, written in _written(stage)}
    lines = {
        name: line.model_copy(update={"annotations": own.get(f"annotations:{name}", line.annotations)})
        for name, line in stage.lines.items()
        if line.annotations is not None
    }
    return stage.model_copy(update={"annotations": own["annotations"], "lines": {**stage.lines, **lines}})


def _written(stage: Stage) -> Iterator[tuple[str, str, tuple[Annotation, ...]]]:
    """Key, prefix of roles, and the annotations of a stage and of each of its lines that has its own."""
    yield "annotations", "annotations", stage.annotations
    for name, line in stage.lines.items():
        if line.annotations is not None:
            yield f"lines.{name}.annotations", f"annotations:{name}", line.annotations
