"""SentiLARE: what is known of words, which are masked, and both losses against the equation in float64."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import cast

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertModel, PreTrainedModel, PreTrainedTokenizerFast

from pipelines.errors import DataError
from pipelines.networks.channel_embeddings import attach
from pipelines.parts.annotations.sentiment_words import SentimentWords, read_polarities
from pipelines.parts.corruptions.sentiment_mask import (
    MASKED_PART_OF_SPEECH,
    MASKED_POLARITY,
    PART_OF_SPEECH,
    POLARITY,
    SentimentMask,
)
from pipelines.parts.embeddings.part_of_speech import PartOfSpeechEmbedding
from pipelines.parts.embeddings.polarity import PolarityEmbedding
from pipelines.parts.heads.linguistic_masked_lm import LAYERS, LinguisticMaskedLMHead
from pipelines.parts.objectives import TrainingStep
from pipelines.parts.objectives.linguistic_masked_lm import LinguisticMaskedLM
from pipelines.parts.tokenizers.wordpiece import WordPiece
from pipelines.task_families.tokenized import annotated
from pipelines.vocabulary import Field, Signal
from tests.pipelines.parts.annotations.tokenized_texts import by_word, whole
from tests.pipelines.parts.corruptions.rows import MASK, plain, token_ids
from tests.small_tasks import chinese_reviews

SHIPPED = Path(__file__).parents[2] / "recipes/knowledge/polarity_zh.tsv"
TEXT = "这家酒店的服务很好，房间好像不太干净，失望。"
"""jieba: 这家/r 酒店/n 的/uj 服务/vn 很/zg 好/a ，/x 房间/n 好像/v 不太/d 干净/a ，/x 失望/v 。/x"""


@cache
def tokenizer() -> PreTrainedTokenizerFast:
    return WordPiece(vocab_size=900).train([text for text, _ in chinese_reviews()] + [TEXT] * 20)


def config_of(size: int) -> BertConfig:
    return BertConfig(
        vocab_size=size, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
        max_position_embeddings=64,
    )  # fmt: skip


def test_each_character_has_part_of_speech_and_polarity_of_its_word() -> None:
    text, tokens = whole(TEXT, tokenizer())
    values = annotated([SentimentWords()], text)
    assert tokens == [*TEXT]
    assert _digits(values["part_of_speech"]) == "55 22 5 11 5 3 5 22 11 44 33 5 11 5".replace(" ", "")
    # 好 is positive, as a part of 好像 it is not
    assert _digits(values["polarity"]) == "11 11 1 11 1 3 1 11 11 11 33 1 22 1".replace(" ", "")
    words, _ = by_word(["服务", "好", "好像"], tokenizer())
    of_words = annotated([SentimentWords()], words)
    assert of_words["polarity"].tolist() == [1, 1, 3, 1, 1] and of_words["part_of_speech"].tolist() == [1, 1, 3, 1, 1]


def _digits(values: np.ndarray) -> str:
    return "".join(map(str, values))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("好\tgood\n", "words.tsv:1: expected a word, a tab, and negative or positive, got '好\\\\tgood'"),
        ("# mine\n好\tpositive\n好\tnegative\n", "words.tsv:3: the word '好' has the other polarity in a line before"),
        ("# none\n", "words.tsv: the lexicon is empty"),
    ],
)
def test_a_lexicon_that_cannot_be_used_is_refused_with_its_line(text: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "words.tsv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=says):
        SentimentWords(file=path).check_files()
    with pytest.raises(DataError, match="none.tsv: cannot be read as a lexicon"):
        SentimentWords(file=tmp_path / "none.tsv").check_files()


def test_the_shipped_lexicon_has_words_of_both_polarities() -> None:
    known = read_polarities(SHIPPED)
    assert min(list(known.values()).count(value) for value in (2, 3)) > 200


def batch_of(rows: int, length: int) -> dict[Field, np.ndarray]:
    """Words of two tokens; every third is positive, every third negative."""
    batch = plain(rows, length)
    words = np.broadcast_to((np.arange(length) - 1) // 2, (rows, length))
    starts = np.broadcast_to(np.arange(length) % 2, (rows, length))
    channels = {PART_OF_SPEECH: 1 + words % 5, POLARITY: 1 + words % 3}
    return {**batch, Field.WORD_STARTS: starts.astype(np.int64), **{k: v.astype(np.int64) for k, v in channels.items()}}


def test_words_of_sentiment_are_masked_at_their_own_rate_with_what_is_known_of_them() -> None:
    batch = batch_of(400, 62)
    made = SentimentMask(rate=0.1, sentiment_rate=0.4).apply(batch, token_ids(), np.random.default_rng(0))
    positions = made[Field.MASKED_POSITIONS]
    selected = np.zeros(batch[Field.INPUT_IDS].size, dtype=bool)
    selected[positions] = True
    pairs = selected.reshape(400, 62)[:, 1:-1].reshape(-1, 2)
    assert (pairs[:, 0] == pairs[:, 1]).all(), "whole words"
    polarity = batch[POLARITY][:, 1:-1].reshape(-1, 2)[:, 0]
    for value, rate in ((1, 0.1), (2, 0.4), (3, 0.4)):
        assert pairs[polarity == value, 0].mean() == pytest.approx(rate, abs=0.03)
    for channel, labels in ((PART_OF_SPEECH, MASKED_PART_OF_SPEECH), (POLARITY, MASKED_POLARITY)):
        assert np.array_equal(made[labels], batch[channel].ravel()[positions])
        assert (made[channel].ravel()[positions] == 0).all()
        assert np.array_equal(made[channel].ravel()[~selected], batch[channel].ravel()[~selected])
    assert (made[Field.INPUT_IDS].ravel()[positions] == MASK).mean() == pytest.approx(0.8, abs=0.03)


def test_a_row_without_a_drawn_word_has_the_nearest_one() -> None:
    batch = batch_of(200, 8)
    made = SentimentMask(rate=1e-9, sentiment_rate=1e-9).apply(batch, token_ids(), np.random.default_rng(0))
    rows = made[Field.MASKED_POSITIONS] // 8
    assert np.array_equal(np.bincount(rows), np.full(200, 2))


def test_head_and_losses_are_the_equation() -> None:
    torch.manual_seed(0)
    head, objective = LinguisticMaskedLMHead(), LinguisticMaskedLM()
    network = head.build(config_of(60), None).double().eval()
    ids = torch.randint(5, 60, (3, 7))
    positions = torch.tensor([1, 5, 8, 20])
    parts, polarities = torch.tensor([1, 5, 0, 3]), torch.tensor([3, 1, 0, 2])
    batch = {
        Field.INPUT_IDS: ids,
        Field.MASKED_POSITIONS: positions,
        MASKED_PART_OF_SPEECH: parts,
        MASKED_POLARITY: polarities,
    }
    signals = head.signals(network, batch, frozenset(LAYERS))
    step = TrainingStep(batch, signals, network, lambda *_: {})
    losses = {name: value.item() for name, value in objective.loss(step).items()}
    states = network.base_model(input_ids=ids).last_hidden_state.flatten(0, 1)[positions].detach().numpy()
    for name, labels in (("part_of_speech", parts), ("polarity", polarities)):
        layer = cast("torch.nn.Linear", network.get_submodule(name))
        scores = states @ layer.weight.detach().numpy().T + layer.bias.detach().numpy()
        known = [at for at, label in enumerate(labels.tolist()) if label]
        terms = [scores[at, labels[at]] - np.log(np.exp(scores[at]).sum()) for at in known]
        assert losses[f"masked_{name}"] == pytest.approx(-np.mean(terms), rel=1e-5)
    assert objective.counts(batch, network) == {"masked_part_of_speech": 3, "masked_polarity": 3}
    unknown = batch | {MASKED_PART_OF_SPEECH: 0 * parts, MASKED_POLARITY: 0 * polarities}
    nothing = objective.loss(TrainingStep(unknown, signals, network, lambda *_: {}))
    assert all(value.item() == 0 for value in nothing.values())


def test_the_input_is_the_sum_of_word_part_of_speech_and_polarity() -> None:
    torch.manual_seed(0)
    network = BertModel(config_of(60), add_pooling_layer=False)
    attach(network, [PartOfSpeechEmbedding(), PolarityEmbedding()])
    network.double().eval()
    words = network.get_input_embeddings()
    tables = {name: words.channels[name]["rows"].weight for name in ("part_of_speech", "polarity")}
    ids, parts, polarities = (torch.randint(0, high, (2, 9)) for high in (60, 6, 4))
    with torch.no_grad():
        channels = {"part_of_speech": parts, "polarity": polarities}
        given = network(input_ids=ids, channels=channels).last_hidden_state
        summed = words.weight[ids] + tables["part_of_speech"][parts] + tables["polarity"][polarities]
        unchanged = BertModel(network.config, add_pooling_layer=False).double().eval()
        weights = {name: value for name, value in network.state_dict().items() if ".channels." not in name}
        unchanged.load_state_dict(weights)
        expected = unchanged(inputs_embeds=summed).last_hidden_state
    torch.testing.assert_close(given, expected, rtol=0, atol=1e-12)


def test_plain_transformers_reads_the_network_and_its_extra_layers_train(tmp_path: Path) -> None:
    from transformers import AutoModelForMaskedLM

    torch.manual_seed(0)
    network = LinguisticMaskedLMHead().build(config_of(60), None)
    network.save_pretrained(tmp_path)
    opened, unmatched = AutoModelForMaskedLM.from_pretrained(tmp_path, output_loading_info=True)
    assert not unmatched["missing_keys"] and isinstance(opened, PreTrainedModel)
    assert {name.partition(".")[0] for name in unmatched["unexpected_keys"]} == {"part_of_speech", "polarity"}
    signals = frozenset(LAYERS)
    batch = {Field.INPUT_IDS: torch.randint(5, 60, (2, 6)), Field.MASKED_POSITIONS: torch.tensor([2, 7])}
    given = LinguisticMaskedLMHead().signals(network, batch, signals | {Signal.MASKED_LOGITS})
    sum(value.sum() for value in given.values()).backward()
    assert all(network.get_submodule(name).weight.grad is not None for name in LAYERS.values())
