"""The models that the annotations of a stage read: opened for training, and saved with what was trained; and those
that its augmentations read, which what was trained does not need."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pipelines.lineage.fingerprint import digest_file
from pipelines.models.opening import open_lines
from pipelines.models.text_states import FOLDER, TextStates
from pipelines.recipe.model_annotations import model_annotations, with_augmentation_models, with_models

if TYPE_CHECKING:
    from pipelines.parts.annotations import ModelAnnotation
    from pipelines.recipe.job import Job
    from pipelines.recipe.schema import Stage

NAME = 12
"""Characters of the digest of its weights that name the folder of a saved model."""


def with_annotation_models(job: Job) -> Job:
    """`job`, whose stage's annotations and augmentations read the models that are among its parents."""

    def reading(role: str, annotation: ModelAnnotation) -> ModelAnnotation:
        model = TextStates(job.annotation_models[role], open_lines)
        return annotation.reading(model, digest_file(model.files[0])[:NAME])

    if not job.annotation_models:
        return job
    stage = with_augmentation_models(with_models(job.stage, reading), job.annotation_models.__getitem__)
    return job.model_copy(update={"stage": stage})


def save_annotation_models(stage: Stage, out: Path) -> None:
    """Write the models that the annotations of `stage` read under the model folder `out`."""
    for _, _, annotation in model_annotations(stage):
        annotation.model.save(out / FOLDER / annotation.folder)
