"""The word of each character as a number: the same for its characters wherever it stands, and another for others."""

from __future__ import annotations

from copy import deepcopy
from zlib import crc32

import rjieba
import torch
from transformers import BertConfig, BertModel

from pipelines.networks.channel_embeddings import attach
from pipelines.parts.annotations.hashed_words import HashedWords
from pipelines.parts.embeddings.hashed_words import HashedWordEmbedding
from pipelines.parts.tokenizers.characters import Characters
from tests.chinese_text import ARTICLES
from tests.pipelines.parts.annotations.tokenized_texts import by_word, values_of, whole

TOKENIZER = Characters(vocab_size=512, spaces=False).train(ARTICLES)


def number(word: str, size: int = 32_768) -> int:
    return 1 + crc32(word.encode()) % (size - 1)


def test_every_character_has_the_number_of_its_word() -> None:
    for article in ARTICLES:
        text, tokens = whole(article, TOKENIZER)
        expected = [number(word) for word in rjieba.cut(article, True) for _ in word]
        assert len(tokens) == len(article) and values_of(HashedWords(), text).tolist() == expected


def test_words_of_a_text_that_is_given_as_words_are_its_own() -> None:
    text, tokens = by_word(["人人生而", "自由"], TOKENIZER)
    assert tokens == list("人人生而自由")
    assert values_of(HashedWords(), text).tolist() == [number("人人生而")] * 4 + [number("自由")] * 2


def test_numbers_fit_the_table_and_an_empty_text_has_none() -> None:
    text, _ = whole("人人 有权，享有生命", TOKENIZER)
    values = values_of(HashedWords(size=5), text)
    assert values.min() >= 1 and values.max() < 5
    empty, _ = whole("", TOKENIZER)
    assert values_of(HashedWords(), empty).tolist() == []


@torch.no_grad()
def test_a_characters_input_is_its_vector_and_that_of_its_word() -> None:
    torch.manual_seed(0)
    dims = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    plain = BertModel(BertConfig(vocab_size=len(TOKENIZER), **dims)).eval()
    read = deepcopy(plain)
    attach(read, [HashedWordEmbedding(size=7)])
    table = read.get_parameter("embeddings.word_embeddings.channels.hashed_words.rows.weight")
    table.normal_()
    text, _ = whole(ARTICLES[0], TOKENIZER)
    words = torch.from_numpy(values_of(HashedWords(size=7), text))[None]
    ids = torch.tensor(TOKENIZER(ARTICLES[0], add_special_tokens=False)["input_ids"])[None]
    expected = plain(inputs_embeds=plain.get_input_embeddings()(ids) + table[words]).last_hidden_state
    given = read(input_ids=ids, channels={"hashed_words": words}).last_hidden_state
    torch.testing.assert_close(given, expected)
