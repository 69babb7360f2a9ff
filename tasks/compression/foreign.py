"""A Hugging Face classifier from elsewhere as the teacher of routes: a stage that takes it over as it is."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipelines.errors import CursusError
from pipelines.lineage.fingerprint import digest_folder
from pipelines.models.opening import CONFIG_KEY
from pipelines.models.untrusted import WEIGHTS, safetensors_header
from pipelines.networks.folder import read_json
from pipelines.parts.heads.sequence_classification import SequenceClassificationHead
from pipelines.recipe.checkpoint import PACKAGE, backbone_of, resolve_checkpoint
from pipelines.recipe.routes import TEACHER, FinishedModel
from pipelines.task_families.labelled_tables import MAIN
from tasks.environment import private_state_folder

FAMILIES = SequenceClassificationHead.reads
"""Families of tasks that a classifier of texts answers."""
HEAD = frozenset({"classifier.weight", "classifier.bias"})
"""Weights of the head: one layer over the backbone's pooler, as in BertForSequenceClassification."""
ADOPTED = "adopted"
"""Folder, in the state folder, of classifiers whose classes are in the order of a dataset."""
NOT_LEARNED = ("*position_ids",)
"""Buffers that older versions of transformers saved with the weights."""
LENGTH = 256
"""Tokens of a text that are read, where the network reads as many."""
TRAINING: Mapping[str, Any] = {
    "objective": "cross_entropy",
    "strategy": "full",
    "optimizer": {"lr": 5.0e-5},
    "budget": {"tokens": None, "epochs": 4},
}
"""How a route trains where it says nothing else: fine-tuning in the published range (Devlin et al. 2018, §A.3)."""


@dataclass(frozen=True)
class ForeignClassifier:
    """A folder that was trained elsewhere."""

    name: str
    """As a user wrote it."""
    folder: Path
    digest: str
    labels: tuple[str, ...]
    """Its classes, in the order of its scores."""
    positions: int | None
    """The longest row that it reads; None for any."""

    @classmethod
    def read(cls, name: str) -> ForeignClassifier:
        """The classifier in a folder, or `package:name/sub/folder`.

        Raises RecipeError for a folder that is no model, is not safe to open, or whose architecture is unknown;
        CursusError for one that this project wrote, for another head than a single layer over a pooler, and for classes
        without names.
        """
        folder = resolve_checkpoint(name)
        config = read_json(folder / "config.json")
        if CONFIG_KEY in config:
            raise CursusError(
                f"{name}: this folder was written by cursus; name the model that it was made of (a stage, the first "
                "digits of a fingerprint, or a registered name): cursus lineage lists them"
            )
        backbone = backbone_of(name)
        _check_head(name, folder, config)
        return cls(name, folder, digest_folder(folder), _labels(name, folder, config), backbone.max_length)

    def model(self, folder: Path | None = None) -> FinishedModel:
        """The stage that takes it over, from `folder` where its classes were put into another order."""
        length = LENGTH if self.positions is None else min(LENGTH, self.positions)
        stage = {
            "kind": "finetune",
            "start": {"checkpoint": str(folder or self.folder), "unused": list(NOT_LEARNED)},
            "corpus": [MAIN],
            "head": {"name": SequenceClassificationHead.name, "pooling": "pooler"},
            "budget": {"tokens": 0, "batch_texts": 32, "length": length},
        }
        return FinishedModel(self.digest, {TEACHER: stage}, {}, TRAINING)

    def in_order(self, labels: Sequence[str], root: Path) -> FinishedModel:
        """The stage over this classifier with its classes in the order of a dataset's `labels`.

        Raises CursusError where the two do not have the same classes.
        """
        if set(labels) != set(self.labels):
            missing, more = sorted(set(labels) - set(self.labels)), sorted(set(self.labels) - set(labels))
            reasons = [
                *([f"it lacks {', '.join(missing)}"] if missing else []),
                *([f"the dataset has no examples of {', '.join(more)}"] if more else []),
            ]
            raise CursusError(
                f"{self.name}: its classes are not those of the dataset: {'; '.join(reasons)}. Choose a dataset of the "
                f"same task with --data, or name the classes as the dataset does in id2label of "
                f"{self.folder / 'config.json'}"
            )
        if tuple(labels) == self.labels:
            return self.model()
        return self.model(self._copied(tuple(labels), root))

    def _copied(self, labels: tuple[str, ...], root: Path) -> Path:
        """A copy with the rows of its head in the order of `labels`."""
        order = hashlib.sha256(json.dumps([self.digest, labels]).encode()).hexdigest()
        folder = private_state_folder(root) / ADOPTED / order[:32]
        if folder.is_dir():
            return folder
        from safetensors.torch import load_file, save_file

        folder.parent.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".") as scratch:
            copied = Path(scratch) / "model"
            shutil.copytree(self.folder, copied)
            weights = load_file(copied / WEIGHTS)
            rows = [self.labels.index(label) for label in labels]
            weights |= {name: weights[name][rows].contiguous() for name in HEAD}
            save_file(weights, copied / WEIGHTS, metadata={"format": "pt"})
            config = read_json(copied / "config.json") | {
                "id2label": dict(enumerate(labels)),
                "label2id": {label: number for number, label in enumerate(labels)},
            }
            (copied / "config.json").write_text(json.dumps(config, ensure_ascii=False, indent=1), encoding="utf-8")
            try:
                os.replace(copied, folder)
            except OSError:
                if not folder.is_dir():  # else another process has made the same copy
                    raise
        return folder


def is_foreign(model: str) -> bool:
    """Whether a user's word for a model is a folder, not the name of one in this project."""
    return model.startswith(PACKAGE) or Path(model).expanduser().is_dir()


def _check_head(name: str, folder: Path, config: Mapping[str, Any]) -> None:
    names = set(safetensors_header(folder / WEIGHTS)) - {"__metadata__"}
    first = {one.split(".")[0] for one in names}
    head = {one for one in names if one.split(".")[0] == "classifier"}
    pooled = any("pooler." in one for one in names)
    if head == HEAD and len(first) == 2 and pooled:
        return
    if not head:
        raise CursusError(
            f"{name}: it has no weights of a classifier ({', '.join(map(str, config.get('architectures') or ['?']))}), "
            "and a network that was pre-trained only answers no task: fine-tune it first, in a recipe whose first "
            "stage has `start: {checkpoint: …}`"
        )
    others = sorted(head - HEAD) + sorted(one for one in first if one != "classifier")
    raise CursusError(
        f"{name}: its classifier has other weights than one layer over a pooler ({', '.join(others[:4])}), which "
        "BertForSequenceClassification has and routes start from; fine-tune its backbone in a recipe whose first stage "
        "has `start: {checkpoint: …}`"
    )


def _labels(name: str, folder: Path, config: Mapping[str, Any]) -> tuple[str, ...]:
    named = config.get("id2label") or {}
    if not isinstance(named, dict) or sorted(map(str, named)) != sorted(str(number) for number in range(len(named))):
        raise CursusError(f"{folder / 'config.json'}: id2label names no classes from 0 on; write one for each score")
    labels = tuple(str(named[str(number)]) for number in range(len(named)))
    if len(labels) < 2:
        raise CursusError(f"{name}: it predicts a number, and routes smaller classifiers; name one with classes")
    if twice := next((label for label in labels if labels.count(label) > 1), None):
        raise CursusError(f"{folder / 'config.json'}: id2label names two classes {twice!r}; name each differently")
    if all(label == f"LABEL_{number}" for number, label in enumerate(labels)):
        raise CursusError(
            f"{folder / 'config.json'}: its classes have no names (LABEL_0 …); write those of the dataset into "
            "id2label, in the order of its scores"
        )
    return labels
