"""Seven trained models and their tables, made once: two stages with three seeds each, and an 8-bit form of one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from pipelines.judging.subjects import Subject
from pipelines.models.classifier import load_classifier
from pipelines.parts.compressions.dynamic_int8 import DynamicInt8
from tests.pipelines.judging.evaluations.tiny_classifier import Examples, documentation, train_classifier, write_tables


@dataclass(frozen=True)
class Trained:
    splits: dict[str, Examples]
    tables: dict[str, Path]
    subjects: tuple[Subject, ...]

    def first(self, stage: str) -> Subject:
        """The model of `stage` with the least seed."""
        return next(subject for subject in self.subjects if subject.stage == stage)


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    root = tmp_path_factory.mktemp("evaluated")
    splits = documentation()
    subjects: list[Subject] = []
    for stage, steps in (("scratch", 40), ("classify", 200)):
        for seed in (0, 1, 2):
            folder = train_classifier(root / f"{stage}-{seed}", splits["train"], seed, steps)
            subjects.append(Subject(stage=stage, seed=seed, fingerprint=f"{len(subjects) + 1:0<64x}", folder=folder))
    DynamicInt8().convert(root / "classify-0", load_classifier(root / "classify-0"), root / "int8")
    subjects.append(Subject(stage="int8", seed=0, fingerprint=f"{len(subjects) + 1:0<64x}", folder=root / "int8"))
    return Trained(splits, write_tables(splits, root / "tables"), tuple(subjects))
