"""Seven trained models and their tables, made once: two stages with three seeds each, and an 8-bit form of one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from pipelines.judging.subjects import Subject
from pipelines.models.classifier import load_classifier
from pipelines.parts.compressions.dynamic_int8 import DynamicInt8
from tests.made_once import made_once
from tests.pipelines.judging.evaluations.tiny_classifier import Examples, documentation, train_classifier, write_tables

STEPS = {"scratch": 40, "classify": 200}
TRAINED = [(stage, seed) for stage in STEPS for seed in (0, 1, 2)]


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
    splits = documentation()

    def train(root: Path) -> None:
        for stage, seed in TRAINED:
            train_classifier(root / f"{stage}-{seed}", splits["train"], seed, STEPS[stage])
        DynamicInt8().convert(root / "classify-0", load_classifier(root / "classify-0"), root / "int8-0")

    root = made_once(tmp_path_factory, "evaluated", train)
    subjects = tuple(
        Subject(stage=stage, seed=seed, fingerprint=f"{number:0<64x}", folder=root / f"{stage}-{seed}")
        for number, (stage, seed) in enumerate([*TRAINED, ("int8", 0)], 1)
    )
    tables = write_tables(splits, tmp_path_factory.mktemp("evaluated-tables"))
    return Trained(splits, tables, subjects)
