"""Words as means of their pieces, whatever stands beside them in the batch, and in Chinese."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from pipelines.judging.probes.examples import Examples, labels_of, types_of
from pipelines.judging.probes.model import ProbedModel
from pipelines.judging.subjects import Subject
from pipelines.models.opening import ModelRecord, build_network
from pipelines.parts.backbones import Backbone
from pipelines.parts.heads import Head
from pipelines.parts.tokenizers import Tokenizer
from pipelines.task_families import TaskFamily
from tests.pipelines.judging.probes.small_models import BODY, opened, save_model
from tests.small_tasks import chinese_reviews

SENTENCES = [["the", "unfathomable", "parser"], ["a", "b"], ["options", "are", "values", ",", "always"] * 4]


def states(model: ProbedModel, ids: np.ndarray) -> tuple[torch.Tensor, ...]:
    with torch.no_grad():
        said = model.opened.network.base_model(input_ids=torch.tensor(ids)[None], output_hidden_states=True)
    return tuple(state[0] for state in said.hidden_states)


def test_a_word_is_the_mean_of_its_pieces_and_a_row_is_read_as_if_alone(tmp_path: Path) -> None:
    model = opened(save_model(tmp_path / "model"), {}, "tagging")
    found = model.read(SENTENCES)
    assert found.begins.tolist() == [0, 3, 5, 25] and found.covered.all()
    for sentence, encoding in enumerate(model.encode(SENTENCES)):
        assert encoding.words[0] == encoding.words[-1] == -1, "the frame is part of no word"
        layers = states(model, encoding.ids)
        for word in range(len(SENTENCES[sentence])):
            pieces = np.flatnonzero(encoding.words == word)
            for layer, alone in zip(found.layers, layers, strict=True):
                expected = alone[pieces].mean(0).numpy()
                assert layer[found.begins[sentence] + word] == pytest.approx(expected, abs=2e-4)
    assert (np.bincount(model.encode(SENTENCES)[0].words + 1)[1:] > 1).any(), "one word has several pieces"


def test_a_text_is_the_mean_of_its_own_tokens(tmp_path: Path) -> None:
    model = opened(save_model(tmp_path / "model"), {}, "text_classification")
    found = model.read([["the parser reads"], ["a file"]], word_level=False)
    ids = model.encode([["the parser reads"]], word_level=False)[0].ids
    assert found.layers[-1].shape == (2, 24)
    assert found.layers[-1][0] == pytest.approx(states(model, ids)[-1][1:-1].mean(0).numpy(), abs=2e-4)


def test_a_model_with_channels_reads_those_of_its_annotations(tmp_path: Path) -> None:
    texts = [["the parser reads"], ["a file"]]
    read = {}
    for task in (0, 2):
        model = opened(save_model(tmp_path / str(task), numbered=task), {}, "text_classification")
        encodings = model.encode(texts, word_level=False)
        assert [one.channels["tasks"].tolist() for one in encodings] == [[task] * len(one.ids) for one in encodings]
        read[task] = model.read(texts, word_level=False).layers[-1]
        ids = torch.tensor(encodings[0].ids)[None]
        with torch.no_grad():
            outputs = model.opened.network.base_model(ids, channels={"tasks": torch.full_like(ids, task)})
        assert read[task][0] == pytest.approx(outputs.last_hidden_state[0, 1:-1].mean(0).numpy(), abs=2e-4)
    assert np.abs(read[0] - read[2]).max() > 0.01, "the same weights, read for another task"
    sentences = opened(tmp_path / "0", {}, "tagging")
    assert sentences.read(SENTENCES).covered.all()


def test_fewer_sentences_are_the_first_of_more(tmp_path: Path) -> None:
    found = opened(save_model(tmp_path / "model"), {}, "tagging").read(SENTENCES)
    two = found.first(2)
    assert two.begins.tolist() == [0, 3, 5] and two.owners.tolist() == [0, 0, 0, 1, 1]
    assert (two.layers[1] == found.layers[1][:5]).all() and len(two.covered) == 5


def test_chinese_words_of_several_characters_are_one_word(tmp_path: Path) -> None:
    reviews = [text for text, _ in chinese_reviews()]
    tokenizer = Tokenizer.model_validate({"name": "wordpiece", "vocab_size": 3000}).train(reviews)
    config = Backbone.model_validate(BODY).config(tokenizer, 128)
    build_network(ModelRecord(head=Head.model_validate("masked_lm")), config).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    examples = Examples({}, TaskFamily.model_validate("tagging"), 0, 9)
    model = ProbedModel(Subject(stage="s", seed=0, fingerprint="0" * 64, folder=tmp_path), examples, 64, 0, "zh")
    words = ["这", "本书", "的", "内容", "很", "好", "，", "BERT", "也", "喜欢"]
    (encoding,) = model.encode([words])
    counted = np.bincount(encoding.words[1:-1])
    assert counted[[0, 1, 2, 3, 9]].tolist() == [1, 2, 1, 2, 2] and len(counted) == len(words)
    assert model.read([words]).covered.all()


def test_the_type_of_a_text_is_its_first_word_or_character() -> None:
    family = TaskFamily.model_validate("text_classification")
    for text, expected in (("Return the sum", "Return"), ("这本书很好", "这"), ("这 本书", "这")):
        assert types_of(family, {"text": text, "label": "x"}) == [expected]
        assert labels_of(family, {"text": text, "label": "x"}) == ["x"]
