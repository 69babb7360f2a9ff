"""Registered names of models: every dataset has its own, so that a model of one never replaces that of another.

reviews-text-classification     what the key `model` of dataset `reviews` says, by default its name and its family
reviews-rte                     a model of the task `rte` alone, one of several of the dataset
reviews-several-tasks           one that answers several tasks
reviews-encoder                 the backbone below it: -encoder, -language-model, -encoder-decoder or -word-vectors
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from pipelines.corpora.settings.dataset import load_settings
from pipelines.lineage.provenance import Provenance
from pipelines.lineage.store import Store
from pipelines.models.extracting import answers_several, extract_task
from pipelines.parts.backbones import Backbone
from pipelines.recipe.final_models import ANSWERING_KINDS
from pipelines.serving.answering.examples import family_of
from pipelines.serving.answering.inference import has_class_probabilities
from pipelines.task_families import TaskFamily
from pipelines.task_families.labelled_tables import MAIN, tasks_in
from pipelines.vocabulary import Ability

SEVERAL_TASKS = "several-tasks"
WRITTEN = "written"
"""Ending of a model whose answers have no probabilities, where another of the task has some: requests get another
answer."""
ENCODER = "encoder"
BACKBONES = {
    Ability.STATIC: "word-vectors",
    Ability.ENCODER_DECODER: "encoder-decoder",
    Ability.CAUSAL: "language-model",
}
"""Endings of the names of backbones that are no encoder, by ability; the first that applies."""
DESCRIPTIONS = {
    ENCODER: "An encoder after its last pre-training stage: a Hugging Face folder to fine-tune from.",
    BACKBONES[Ability.STATIC]: "A table of word vectors after its last training stage on plain text, in a Hugging Face "
    "folder.",
    BACKBONES[Ability.ENCODER_DECODER]: "An encoder and decoder after the last pre-training stage: a Hugging Face "
    "folder.",
    BACKBONES[Ability.CAUSAL]: "A language model that reads from left to right: a Hugging Face folder to prompt or "
    "fine-tune.",
}


def answering_name(root: Path, store: Store, provenance: Provenance) -> str:
    """Registered name of an artifact of `store` that answers one task or several.

    `root` is that of the checkout. Where its params.yaml has the dataset no more, the name is the default one.
    """
    dataset, folder = dataset_of(store, provenance), store.folder(provenance.fingerprint)
    own = _own_name(root, dataset)
    if answers_several(folder):
        return own or f"{dataset}-{SEVERAL_TASKS}"
    family, has_probabilities = _task_of(folder)
    named = [task for task in tasks_in(provenance.data) if task != MAIN]
    name = f"{own or dataset}-{_dashed(named[0])}" if named else own or f"{dataset}-{_dashed(family.name)}"
    return f"{name}-{WRITTEN}" if family.is_single_text and not has_probabilities else name


def backbone_name(root: Path, store: Store, provenance: Provenance) -> str:
    """Registered name of a model trained on plain text, by the abilities of its backbone."""
    dataset = dataset_of(store, provenance)
    return f"{_own_name(root, dataset) or dataset}-{_ending(provenance)}"


def description(store: Store, provenance: Provenance) -> str:
    """What MLflow's UI says of the registered model that an artifact is a version of."""
    dataset, folder = dataset_of(store, provenance), store.folder(provenance.fingerprint)
    if provenance.kind not in ANSWERING_KINDS:
        return DESCRIPTIONS[_ending(provenance)]
    if answers_several(folder):
        return (
            f"Answers several tasks of {dataset} with one backbone: examples of one task in, named by the parameter "
            "`task`, an answer a row out."
        )
    family, has_probabilities = _task_of(folder)
    if family.is_single_text and has_probabilities:
        return f"Classifies texts of {dataset}: a label and the probability of every label out."
    task = family.name.replace("_", " ")
    return f"Answers {task} of {dataset}: a data frame with the task's columns in, an answer a row out."


def _task_of(folder: Path) -> tuple[TaskFamily, bool]:
    """The family of the one task that a model answers, and whether its answers have probabilities."""
    with tempfile.TemporaryDirectory(prefix="cursus-task-") as scratch:
        task_folder = extract_task(folder, None, Path(scratch))
        return family_of(task_folder), has_class_probabilities(task_folder)


def _ending(provenance: Provenance) -> str:
    backbone = provenance.identity.get("stage", {}).get("backbone")
    offers = Backbone.model_validate(backbone).offers if backbone else frozenset()
    return next((ending for ability, ending in BACKBONES.items() if ability in offers), ENCODER)


def _dashed(name: str) -> str:
    return name.replace("_", "-")


def dataset_of(store: Store, provenance: Provenance) -> str:
    """The dataset that a model, or else the one it was made from, has read; the name of its recipe if none has."""
    for source in provenance.data.values():
        return source.dataset
    for parent in provenance.parents.values():
        return dataset_of(store, Provenance.read(store.folder(parent)))
    return provenance.recipe


def _own_name(root: Path, dataset: str) -> str | None:
    """The key `model` of a dataset of params.yaml; None where it has no such key, or is not there any more."""
    if not (root / "params.yaml").exists():
        return None
    settings = load_settings(root)
    return settings[dataset].model if dataset in settings else None
