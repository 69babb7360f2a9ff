"""Perplexity on the pairs of words that a counted text lacks, number for number."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pyarrow.parquet as parquet
import pytest
import torch

from pipelines.errors import RecipeError
from pipelines.judging.evaluations.stage import EVALUATION, evaluate
from pipelines.judging.subjects import Subject
from pipelines.models.opening import open_model
from pipelines.recipe.job import Job, Runtime
from pipelines.recipe.kinds import Kind
from pipelines.recipe.schema import Stage
from pipelines.training.ranks.run import run

TOKENIZER = {"name": "words", "vocab_size": 300, "min_count": 1}
LENGTH = 24


def counted(order: int, tables: dict[str, Path], out: Path, size: int = 300) -> Path:
    stage = Stage.model_validate(
        {
            "kind": "pretrain",
            "corpus": "general",
            "tokenizer": {**TOKENIZER, "vocab_size": size},
            "limits": {"unknown": 1},
            "backbone": {"name": "ngram", "order": order},
            "estimate": "kneser_ney",
            "head": "causal_lm",
            "budget": {"length": 64, "tokens": 3000},
        }
    )
    run(
        Job(
            fingerprint="c" * 64, recipe="r", stage_name="general", stage=stage, seed=0, language="en", tables=tables,
            out=out, runtime=Runtime(threads=1),
        )
    )  # fmt: skip
    return out


@pytest.fixture(scope="module")
def folders(tables: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    home = tmp_path_factory.mktemp("counted")
    made = {name: counted(order, tables, home / name) for name, order in (("one", 1), ("two", 2))}
    return {**made, "other": counted(2, tables, home / "other", 200)}


def job_of(folders: dict[str, Path], stages: tuple[str, ...], seen_by: str, tables: dict[str, Path], out: Path) -> Job:
    suite = [{"name": "unseen_pairs", "seen_by": seen_by, "length": LENGTH}]
    stage = Stage.model_validate({"kind": Kind.EVALUATE, "start": list(stages), "suite": suite})
    subjects = tuple(
        Subject(stage=name, seed=0, fingerprint=name.ljust(64, "0"), folder=folders[name], answers=False)
        for name in stages
    )
    return Job(
        fingerprint="f" * 64, recipe="r", stage_name="report", stage=stage, seed=0, language="en", tables=tables,
        out=out, subjects=subjects, runtime=Runtime(threads=1),
    )  # fmt: skip


def test_only_tokens_after_a_word_that_they_never_followed_are_judged(
    folders: dict[str, Path], tables: dict[str, Path], tmp_path: Path
) -> None:
    job = job_of(folders, ("one", "two"), "two", tables, tmp_path)
    metrics = evaluate(job).metrics
    opened = {name: open_model(folders[name], "cpu") for name in ("one", "two")}
    keys = set(opened["two"].network.base_model.tables[1].keys.tolist())
    backend, end = opened["one"].tokenizer.backend_tokenizer, int(opened["one"].tokenizer.eos_token_id)
    texts = [row["text"] for row in parquet.read_table(tables["test"]).to_pylist()]
    nats, unseen, every = {"one": 0.0, "two": 0.0}, 0, 0
    for text in texts:
        ids = backend.encode(text, add_special_tokens=False).ids
        for row in ([end, *ids[at : at + LENGTH]] for at in range(0, len(ids), LENGTH)):
            if len(row) == 2:
                continue  # a single word has no pair
            every += len(row) - 1
            log_probs = {name: one.network(torch.tensor([row])).logits[0] for name, one in opened.items()}
            for at in range(2, len(row)):
                if row[at - 1] * len(opened["one"].tokenizer) + row[at] not in keys:
                    unseen += 1
                    nats = {name: value - float(log_probs[name][at - 1, row[at]]) for name, value in nats.items()}
    assert 0 < unseen < every
    for name, value in nats.items():
        assert metrics[f"unseen_pairs/{name}"] == pytest.approx(math.exp(value / unseen), rel=1e-5)
    record = json.loads((tmp_path / EVALUATION).read_text())["sections"]["unseen_pairs"]
    assert [one["tokens"] for one in record["stages"]] == [unseen, unseen]
    assert record["share"] == pytest.approx(unseen / every)


@pytest.mark.parametrize(
    ("stages", "seen_by", "words"),
    [
        (("one", "two"), "one", ("one is no n-gram model of order 2 or more",)),
        (("other", "two"), "two", ("other has other tokens than two", "the same tokenizer")),
    ],
)
def test_what_cannot_be_compared_is_one_sentence(
    stages: tuple[str, ...], seen_by: str, words: tuple[str, ...], folders: dict[str, Path], tables: dict[str, Path],
    tmp_path: Path,
) -> None:  # fmt: skip
    with pytest.raises(RecipeError) as refused:
        evaluate(job_of(folders, stages, seen_by, tables, tmp_path))
    assert all(word in str(refused.value) for word in words) and "\n" not in str(refused.value)
