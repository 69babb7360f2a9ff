"""Perplexity, and pseudo-perplexity, against transformers' own losses and against asking token by token."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import torch
from transformers import (
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    BertConfig,
    LayoutLMConfig,
    LayoutLMForMaskedLM,
    PreTrainedTokenizerFast,
)

from pipelines.errors import DataError, RecipeError
from pipelines.judging.evaluations.held_out import HeldOutText, held_out_text
from pipelines.judging.evaluations.perplexity import next_token_losses
from pipelines.judging.evaluations.pseudo_perplexity import masked_token_losses
from pipelines.judging.evaluations.stage import EVALUATION, evaluate
from pipelines.judging.subjects import Subject
from pipelines.models.opening import ModelRecord, OpenedModel, build_network, open_model
from pipelines.parts.annotations.boxes import Boxes
from pipelines.parts.embeddings.boxes import BoxEmbedding
from pipelines.parts.heads.masked_lm import MaskedLMHead
from pipelines.recipe.job import Job
from pipelines.recipe.kinds import Kind
from pipelines.recipe.schema import Stage
from pipelines.reports.report import render_report
from tests.pipelines.judging.evaluations.test_prompting import save
from tests.small_corpus import documents, write_tables

TEXTS = documents("logging")[:6]


@pytest.fixture(scope="module")
def causal(tokenizer: PreTrainedTokenizerFast, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(tmp_path_factory.mktemp("causal"), tokenizer)


@pytest.fixture(scope="module")
def masked(tokenizer: PreTrainedTokenizerFast, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("masked")
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=512, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
        max_position_embeddings=64, initializer_range=0.3,
    )  # fmt: skip
    build_network(ModelRecord(head=MaskedLMHead()), config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def rows_of(tokenizer: PreTrainedTokenizerFast, width: int) -> list[HeldOutText]:
    ids = [tokenizer.encode(text, add_special_tokens=False, truncation=False) for text in TEXTS]
    return [HeldOutText([row[at : at + width] for at in range(0, len(row), width)], 1) for row in ids]


def test_a_text_is_as_likely_as_transformers_says_it_is(causal: Path, tokenizer: PreTrainedTokenizerFast) -> None:
    texts = rows_of(tokenizer, 40)
    assert max(len(text.rows) for text in texts) > 1
    found = next_token_losses(open_model(causal, "cpu"), texts)
    network = AutoModelForCausalLM.from_pretrained(causal).eval()
    for text, nats in zip(texts, found, strict=True):
        wanted = 0.0
        for row in text.rows:
            ids = torch.tensor([[tokenizer.sep_token_id, *row]])
            with torch.no_grad():
                wanted += float(network(input_ids=ids, labels=ids).loss) * len(row)
        assert nats == pytest.approx(wanted, rel=1e-4)


def test_each_token_is_predicted_from_all_others(masked: Path, tokenizer: PreTrainedTokenizerFast) -> None:
    texts = rows_of(tokenizer, 24)[:2]
    found = masked_token_losses(open_model(masked, "cpu"), texts)
    network = AutoModelForMaskedLM.from_pretrained(masked).eval()
    for text, nats in zip(texts, found, strict=True):
        wanted = 0.0
        for row in text.rows:
            framed = torch.tensor([tokenizer.cls_token_id, *row, tokenizer.sep_token_id])
            for place in range(1, len(row) + 1):
                asked = framed.clone()
                asked[place] = tokenizer.mask_token_id
                with torch.no_grad():
                    said = network(input_ids=asked[None]).logits[0, place].double().log_softmax(-1)
                wanted -= float(said[framed[place]])
        assert nats == pytest.approx(wanted, rel=1e-5)


def test_a_masked_word_keeps_its_box(tokenizer: PreTrainedTokenizerFast, tmp_path: Path) -> None:
    config = BertConfig(
        vocab_size=512, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
        max_position_embeddings=64, initializer_range=0.3,
    )  # fmt: skip
    record = ModelRecord(head=MaskedLMHead(), annotations=(Boxes(),), embeddings=(BoxEmbedding(),))
    network = build_network(record, config).eval()
    opened = OpenedModel(record, network, tokenizer)
    words = ["Date", "of", "registration", "No.", "(form", "533)"]
    boxes = [[40 * at, 10 * at, 40 * at + 30, 10 * at + 8] for at in range(6)]
    example = {"tokens": words, "boxes": boxes, "page": [500, 100]}
    text = held_out_text(" ".join(words), opened, 5, example, "test example 0")
    (nats,) = masked_token_losses(opened, [text])

    published = LayoutLMForMaskedLM(
        LayoutLMConfig(**{**config.to_dict(), "model_type": "layoutlm"}, max_2d_position_embeddings=1024)
    ).eval()
    tables = {"x": "x_position", "y": "y_position", "height": "h_position", "width": "w_position"}
    renamed = {
        f"word_embeddings.channels.boxes.{table}.weight": f"{other}_embeddings.weight"
        for table, other in tables.items()
    }
    weights = {}
    for name, value in network.state_dict().items():
        for table, other in renamed.items():
            name = name.replace(table, other)
        weights[name.replace("bert.", "layoutlm.", 1) if name.startswith("bert.") else name] = value
    missing, unexpected = published.load_state_dict(weights, strict=False)
    assert not unexpected and all("pooler" in name or "position_ids" in name or "decoder" in name for name in missing)

    encoded = tokenizer.backend_tokenizer.encode(words, is_pretokenized=True, add_special_tokens=False)
    box_of = [[2 * box[0], 10 * box[1], 2 * box[2], 10 * box[3]] for box in boxes]
    placed = [box_of[word] for word in encoded.word_ids]
    assert len(encoded.ids) > 10 and [one for row in text.rows for one in row] == encoded.ids
    expected = 0.0
    for begin in range(0, len(encoded.ids), 5):
        ids = torch.tensor([tokenizer.cls_token_id, *encoded.ids[begin : begin + 5], tokenizer.sep_token_id])
        bbox = torch.tensor([[0] * 4, *placed[begin : begin + 5], [1000] * 4])
        for position in range(1, len(ids) - 1):
            query = ids.clone()
            query[position] = tokenizer.mask_token_id
            with torch.no_grad():
                logits = published(input_ids=query[None], bbox=bbox[None]).logits[0, position].double()
            expected -= float(logits.log_softmax(-1)[ids[position]])
    assert nats == pytest.approx(expected, rel=1e-5)
    with pytest.raises(DataError, match="test example 3: the column 'boxes' is missing"):
        held_out_text("no page", opened, 5, {"text": "no page", "tokens": ["no", "page"]}, "test example 3")


def judged(folder: Path, name: str, out: Path, tables: dict[str, Path]) -> Job:
    stage = Stage.model_validate({"kind": Kind.EVALUATE, "start": ["general"], "suite": [{"name": name, "length": 32}]})
    subject = Subject(stage="general", seed=0, fingerprint="1" * 64, folder=folder, answers=False)
    return Job(
        fingerprint="f" * 64, recipe="r", stage_name="report", stage=stage, seed=0, language="en", subjects=(subject,),
        tables=tables, out=out,
    )  # fmt: skip


@pytest.mark.parametrize("name", ["perplexity", "pseudo_perplexity"])
def test_a_record_says_perplexity_a_token_and_bits_a_byte_of_the_same_texts(
    name: str, causal: Path, masked: Path, tmp_path: Path
) -> None:
    tables = write_tables(tmp_path)
    result = evaluate(judged(causal if name == "perplexity" else masked, name, tmp_path / "out", tables))
    section = json.loads((tmp_path / "out" / EVALUATION).read_text())["sections"][name]
    (stage,) = section["stages"]
    assert result.metrics == {f"{name}/general": stage["perplexity"]["mean"]}
    assert stage["perplexity"]["low"] <= stage["perplexity"]["mean"] <= stage["perplexity"]["high"]
    # both are the same nats: ln PPL · tokens = bits a byte · ln 2 · bytes
    size = sum(len(text.encode()) for label in ("email", "unittest", "xml") for text in documents(label)[14:20])
    nats = math.log(stage["perplexity"]["mean"]) * stage["tokens"]
    assert stage["bits_per_byte"]["mean"] == pytest.approx(nats / math.log(2) / size, rel=1e-6)
    step = {"stage": "report", "seed": 0, "kind": "evaluate", "fingerprint": "out", "parents": {}, "cached": False}
    execution = {
        "id": "x",
        "recipe": "r",
        "dataset": "d",
        "started": "2026",
        "seconds": 1.0,
        "steps": [step | {"seconds": 1.0}],
    }
    render_report(execution, {}, tmp_path, {}, {}, tmp_path / "pages" / "report.html")
    page = (tmp_path / "pages" / "calibration.html").read_text(encoding="utf-8")
    assert f"<h2>{name.replace('_', '-').capitalize()}</h2>" in page and "Bits per byte" in page
    told = (tmp_path / "pages" / "tables" / f"calibration-report-{name}.csv").read_text(encoding="utf-8")
    assert repr(stage["bits_per_byte"]["mean"]) in told


def test_a_head_that_needs_more_than_a_mask_is_refused(masked: Path) -> None:
    opened = open_model(masked, "cpu")
    from pipelines.parts.heads import Head

    other = ModelRecord(head=Head.model_validate("permuted_lm"))
    with pytest.raises(RecipeError, match="permuted_lm needs .*permutation_mask"):
        masked_token_losses(type(opened)(other, opened.network, opened.tokenizer), [])
