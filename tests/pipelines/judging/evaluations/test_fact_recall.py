"""Recall of facts against ranks that are counted one by one in the logits of transformers."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import torch
from transformers import AutoModelForMaskedLM, BertConfig, PreTrainedTokenizerFast

from pipelines.errors import RecipeError
from pipelines.judging.evaluations.fact_recall import FactRecallEvaluation, FactSentence, reciprocal_ranks
from pipelines.models.opening import ModelRecord, OpenedModel, build_network, open_model
from pipelines.parts.annotations.boxes import Boxes
from pipelines.parts.heads.masked_lm import MaskedLMHead

FACTS = "file (system)\tis part of\ta directory\nlogger\tobject\n# a remark\nmessage\tis a kind of\ttext\n"


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    path = tmp_path / "facts.tsv"
    path.write_text(FACTS, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def folder(tokenizer: PreTrainedTokenizerFast, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("masked")
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=512, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
        max_position_embeddings=64, initializer_range=0.3,
    )  # fmt: skip
    build_network(ModelRecord(head=MaskedLMHead()), config).save_pretrained(path)
    tokenizer.save_pretrained(path)
    return path


def expected(folder: Path, tokenizer: PreTrainedTokenizerFast, left: str, hidden: str, right: str) -> tuple[float, int]:
    """The sum of 1 / rank over the tokens of `hidden`, and their number."""
    before, own, after = (tokenizer.encode(one, add_special_tokens=False) for one in (left, hidden, right))
    masked = [tokenizer.cls_token_id, *before, *[tokenizer.mask_token_id] * len(own), *after, tokenizer.sep_token_id]
    with torch.no_grad():
        logits = AutoModelForMaskedLM.from_pretrained(folder).eval()(input_ids=torch.tensor([masked])).logits[0]
    of_hidden = logits[1 + len(before) : 1 + len(before) + len(own)]
    ranks = [1 + int((row > row[token]).sum()) for row, token in zip(of_hidden, own, strict=True)]
    return sum(1 / rank for rank in ranks), len(own)


def test_all_tokens_of_either_end_are_hidden_and_ranked(
    folder: Path, tokenizer: PreTrainedTokenizerFast, graph: Path
) -> None:
    sentences = FactRecallEvaluation(graphs=(graph,)).sentences(0)
    assert [one.text for one in sentences[::2]] == [
        "file is part of a directory.", "logger is a kind of object.", "message is a kind of text."
    ]  # fmt: skip
    assert [one.text[slice(*one.hidden)] for one in sentences] == [
        "file", "a directory", "logger", "object", "message", "text"
    ]  # fmt: skip
    found = reciprocal_ranks(open_model(folder, "cpu"), sentences)
    for sentence, row in zip(sentences, found, strict=True):
        begin, end = sentence.hidden
        parts = sentence.text[:begin], sentence.text[begin:end], sentence.text[end:]
        assert row == pytest.approx(expected(folder, tokenizer, *parts), rel=1e-5)


def test_the_figure_is_the_mean_over_hidden_tokens_and_a_fact_is_one_item(folder: Path, graph: Path) -> None:
    kept: dict[str, np.ndarray] = {}
    subject = SimpleNamespace(stage="words", seed=0, folder=folder)
    context: Any = SimpleNamespace(
        language_models={"words": [subject]}, seed=0, threads=1,
        keep=lambda name, model, sample: kept.update({name: sample}),
    )  # fmt: skip
    evaluation = FactRecallEvaluation(graphs=(graph,))
    record = evaluation.measure(context)
    found = reciprocal_ranks(open_model(folder, "cpu"), evaluation.sentences(0))
    assert record["facts"] == 3 and kept["fact_recall"].shape == (3, 2)
    mean = found[:, 0].sum() / found[:, 1].sum()
    assert record["headline"] == {"fact_recall/words": pytest.approx(mean)}
    (figure,) = FactRecallEvaluation.figures(cast("Any", None))
    assert figure.score(kept["fact_recall"]) == pytest.approx(mean) and not figure.lower
    assert FactRecallEvaluation(graphs=(graph,), facts=1).measure(context)["facts"] == 1


def test_a_model_that_cannot_tell_tokens_apart_recalls_nothing(folder: Path, graph: Path) -> None:
    opened = open_model(folder, "cpu")
    with torch.no_grad():
        for parameter in opened.network.parameters():
            parameter.zero_()
    recalled = reciprocal_ranks(opened, FactRecallEvaluation(graphs=(graph,)).sentences(0))
    assert recalled[:, 0] == pytest.approx(recalled[:, 1] / 512), "every token has the last rank of the vocabulary"


def test_a_fact_that_is_longer_than_a_row_is_named_with_the_limit(folder: Path) -> None:
    fitting, long = FactSentence("a b.", (0, 1)), FactSentence(f"logger is {'a ' * 100}b.", (0, 6))
    with pytest.raises(RecipeError, match=r"the fact 'logger is a .* has \d+ tokens, and the model reads at most 64; "):
        reciprocal_ranks(open_model(folder, "cpu"), [fitting, long])


def test_a_model_whose_scores_are_no_numbers_recalls_nothing(folder: Path, graph: Path) -> None:
    opened = open_model(folder, "cpu")
    with torch.no_grad():
        for parameter in opened.network.parameters():
            parameter.fill_(torch.nan)
    recalled = reciprocal_ranks(opened, FactRecallEvaluation(graphs=(graph,)).sentences(0))
    assert recalled[:, 1].all() and (recalled[:, 0] < recalled[:, 1] / 100).all()


def test_a_model_that_needs_more_than_tokens_is_refused(tokenizer: PreTrainedTokenizerFast) -> None:
    record = ModelRecord(head=MaskedLMHead(), annotations=(Boxes(),))
    opened = OpenedModel(record, cast("Any", None), tokenizer)
    with pytest.raises(RecipeError, match="fact_recall: the model needs boxes to predict a token; name a stage that"):
        reciprocal_ranks(opened, [FactSentence("a b.", (0, 1))])


def test_a_line_that_is_no_fact_is_refused(tmp_path: Path) -> None:
    broken = tmp_path / "broken.tsv"
    broken.write_text("a\tis\tb\nc\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"broken.tsv:2: expected subject, predicate and object"):
        FactRecallEvaluation(graphs=(broken,))
