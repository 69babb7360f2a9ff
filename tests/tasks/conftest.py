"""A tiny real store, a real tracking database, and what every test of this folder needs of them."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from pipelines.lineage.fingerprint import fingerprint
from pipelines.lineage.provenance import DataSource, Environment, Provenance
from pipelines.lineage.store import Artifact, Store
from tasks.environment import QUIET, state_folder, tracking_uri
from tasks.servers.tracking_database import migrate_tracking_store
from tests.made_once import made_once

LABELS = ["cluster", "linalg", "stats"]
TEXTS = ["Solve a linear system.", "Draw samples from a distribution.", "Assign points to centroids."]
BEGAN = datetime(2026, 3, 1, 10, 0, tzinfo=UTC)


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout whose database was created once; tests take copies of it, because creating one takes seconds."""
    return made_once(tmp_path_factory, "migrated", migrate_tracking_store)


@pytest.fixture
def root(migrated: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty checkout of its own, with its database, and the environment that points at it."""
    root = tmp_path / "checkout"
    shutil.copytree(migrated, root)
    for name, value in {**QUIET, "MLFLOW_TRACKING_URI": tracking_uri(root)}.items():
        monkeypatch.setenv(name, value)
    assert (state_folder(root) / "mlflow.db").exists()
    yield root


@pytest.fixture(scope="session")
def classifier_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real, tiny, untrained BERT classifier as transformers saves it."""
    from tokenizers import BertWordPieceTokenizer
    from transformers import BertConfig, BertForSequenceClassification, BertTokenizer

    folder = tmp_path_factory.mktemp("bert")
    words = BertWordPieceTokenizer()
    words.train_from_iterator(TEXTS, vocab_size=200)
    vocabulary = folder / "vocab.txt"
    vocabulary.write_text("\n".join(sorted(words.get_vocab(), key=words.get_vocab().__getitem__)), encoding="utf-8")
    BertTokenizer(vocab=str(vocabulary), model_max_length=32).save_pretrained(folder)
    config = BertConfig(
        vocab_size=words.get_vocab_size(),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=32,
        id2label=dict(enumerate(LABELS)),
        label2id={label: number for number, label in enumerate(LABELS)},
    )
    BertForSequenceClassification(config).save_pretrained(folder)
    return folder


class Builder:
    """Publishes steps into the store of a checkout, one hour apart."""

    def __init__(self, root: Path, model: Path) -> None:
        self.root = root
        self.store = Store(root / "data" / "store")
        self.model = model
        self.made = 0

    def table(self, name: str, texts: list[str]) -> DataSource:
        """A prepared table on disk, with the digest DVC would give it."""
        path = self.root / "data" / "prepared" / "docs" / f"{name}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pyarrow.parquet.write_table(pyarrow.table({"text": texts, "length": [len(text) for text in texts]}), path)
        digest = hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()
        return DataSource(digest=digest, path=path.relative_to(self.root).as_posix())

    def step(
        self,
        stage: str,
        kind: str,
        *,
        seed: int = 0,
        parents: Mapping[str, str] | None = None,
        data: Mapping[str, DataSource] | None = None,
        metrics: Mapping[str, Any] | None = None,
        settings: Mapping[str, Any] | None = None,
        untrained: bool = False,
    ) -> Artifact:
        """Publish the artifact of one step: the tiny model (or a verdict), a curve of two lines, the record."""
        identity = {
            "stage": {"kind": kind, "name": stage, **(settings or {})},
            "seed": seed,
            "parents": dict(parents or {}),
            "untrained": untrained,
        }
        name = fingerprint(identity)
        work = self.store.workspace(name)
        if kind == "evaluate":
            (work / "evaluation.json").write_text("{}", encoding="utf-8")
        else:
            shutil.copytree(self.model, work, dirs_exist_ok=True)
            lines = [
                {"step": 10, "tokens": 1000, "train/loss": 5.0, "lr": 0.001},
                {"step": 20, "tokens": 2000, "train/loss": 4.0, "lr": 0.0},
            ]
            (work / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        self.made += 1
        environment = Environment(
            python="3.11.7",
            platform="Linux",
            packages={},
            commit="0123abc",
            started=(BEGAN + timedelta(hours=self.made)).isoformat(),
            seconds=95.0,
        )
        return self.store.publish(
            Provenance(
                fingerprint=name,
                recipe="regime",
                stage=stage,
                kind=kind,
                seed=seed,
                identity=identity,
                parents=dict(parents or {}),
                data=dict(data or {}),
                files={},
                result={"metrics": dict(metrics or {}), "tokens": 2000, "steps": 20, "parameters": 9000},
                environment=environment,
            )
        )

    def regime(self) -> dict[str, Artifact]:
        """All stages of a small regime, in the order they run: two seeds, a student that has two parents, a report."""
        tables = {
            name: self.table(name, TEXTS * size)
            for name, size in {
                "general": 90,
                "domain": 40,
                "task_text": 20,
                "train": 5,
                "validation": 3,
                "test": 4,
            }.items()
        }
        task = {name: tables[name] for name in ("train", "validation", "test")}
        made: dict[str, Artifact] = {}

        def add(name: str, stage: str, kind: str, parents: Mapping[str, str], **rest: Any) -> None:
            found = {role: made[parent].fingerprint for role, parent in parents.items()}
            made[name] = self.step(stage, kind, parents=found, **rest)

        objective = {"objective": [{"name": "masked_lm", "weight": 1.0}], "budget": {"tokens": 2000, "epochs": None}}
        add(
            "general",
            "general",
            "pretrain",
            {},
            data={"general": tables["general"]},
            metrics={"validation/loss": 4.2},
            settings=objective,
        )
        add(
            "domain",
            "domain",
            "adapt_domain",
            {"start": "general"},
            data={"domain": tables["domain"]},
            metrics={"validation/loss": 3.9},
        )
        add(
            "task",
            "task",
            "adapt_task",
            {"start": "domain"},
            data={"task_text": tables["task_text"]},
            metrics={"validation/loss": 3.7},
        )
        for seed in (0, 1):
            add(
                f"classify@{seed}",
                "classify",
                "finetune",
                {"start": "task"},
                data=task,
                seed=seed,
                metrics={"validation/accuracy": 0.61 + seed / 100},
            )
        add(
            "small",
            "small",
            "compress",
            {"start": "task", "teacher": "classify@0"},
            data=task,
            metrics={"validation/accuracy": 0.58},
        )
        add("int8", "int8", "compress", {"start": "small"}, metrics={"agreement": 0.99})
        judged = {f"subject:{name}": name for name in ("classify@0", "classify@1", "small", "int8")}
        add("report", "report", "evaluate", judged, data=task, metrics={"classify": {"accuracy": 0.6}})
        return made


@pytest.fixture
def builder(root: Path, classifier_folder: Path) -> Builder:
    return Builder(root, classifier_folder)


@contextmanager
def executing(root: Path, execution: str) -> Iterator[subprocess.Popen[str]]:
    """A process that has begun an execution with a step called general, told MLflow of it, and sleeps."""
    script = textwrap.dedent(
        f"""
        import time
        from pathlib import Path
        from pipelines.lineage.store import Store
        from tasks.tracking.tracked_values import TrackedStep
        from tasks.tracking.executions import Tracker
        tracker = Tracker(Path({str(root)!r}))
        tracker.begin_execution({execution!r}, "bert", "docs", [], Store(Path({str(root / "empty")!r})))
        tracker.begin_step(TrackedStep("f" * 64, "bert", "general", "pretrain", 0, {{}}, {{}}, {{}}, "general"))
        assert tracker._outbox.drain(60)
        print("begun", flush=True)
        time.sleep(600)
        """
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, env=os.environ) as child:
        assert child.stdout is not None and child.stdout.readline() == "begun\n"
        try:
            yield child
        finally:
            child.kill()
