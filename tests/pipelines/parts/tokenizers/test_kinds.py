"""What single kinds of tokenizer promise beyond the others."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from transformers import AutoTokenizer, XLNetConfig, XLNetModel

from pipelines.parts.tokenizers import Tokenizer
from tests.chinese_text import ARTICLES
from tests.small_corpus import documents


def test_words_are_ranked_and_keep_their_counts(tmp_path: Path) -> None:
    texts = [text for text in documents("json", "argparse") if text.isascii()]
    Tokenizer.model_validate({"name": "words", "min_count": 3}).train(texts).save_pretrained(tmp_path)
    opened = AutoTokenizer.from_pretrained(tmp_path)
    seen = Counter(word for text in texts for word in re.findall(r"\w+|[^\w\s]+", text.lower()))
    counts = opened.init_kwargs["counts"]
    words = opened.convert_ids_to_tokens(range(len(opened)))
    assert words[3:] == sorted((w for w, n in seen.items() if n >= 3), key=lambda w: (-seen[w], w))
    assert counts == [0, sum(n for n in seen.values() if n < 3), len(texts), *(seen[word] for word in words[3:])]
    # the same counts, from the ids that a network would read
    ids = np.concatenate([opened(text)["input_ids"] for text in texts])
    assert np.bincount(ids, minlength=len(opened)).tolist() == counts


def test_words_of_chinese_are_characters_or_come_with_spaces() -> None:
    text = "人人 生而 自由"
    characters = Tokenizer.model_validate({"name": "words", "min_count": 1}).train([text])
    spaced = Tokenizer.model_validate({"name": "words", "min_count": 1, "split_chinese": False}).train([text])
    assert characters.tokenize(text) == list("人人生而自由") and spaced.tokenize(text) == ["人人", "生而", "自由"]


def test_a_chinese_character_takes_one_token_of_the_vocabulary() -> None:
    part = Tokenizer.model_validate({"name": "wordpiece", "vocab_size": 160})
    tokenizer = part.train(ARTICLES)
    text = "".join(ARTICLES)
    # half of the vocabulary would not hold them
    assert len(set(text)) > (160 - 5) // 2 and len(tokenizer) <= 160
    kept = [token for token in tokenizer.get_vocab() if len(token) == 1]
    assert len(kept) == min(len(set(text)), 3 * (160 - 5) // 4)
    counts = Counter(text)
    assert min(counts[token] for token in kept) >= max(counts[rare] for rare in set(text) - set(kept))
    assert set(tokenizer.tokenize(text)) == {*kept, "[UNK]"}


def test_a_vocabulary_of_chinese_knows_ascii_where_it_has_room() -> None:
    english, text = "Mail, at 9:30, 'ok'! (50 %) ~", "".join(ARTICLES)
    small, large = (
        Tokenizer.model_validate({"name": "wordpiece", "vocab_size": size}).train(ARTICLES) for size in (160, 1024)
    )
    assert not set(text) & set(english), "else the articles would teach it"
    assert "[UNK]" not in large.tokenize(text + english) and "##k" in large.get_vocab()
    assert set(small.tokenize(english)) == {"[UNK]"}


def test_sentinels_are_never_cut_and_leave_room_for_text() -> None:
    part = Tokenizer.model_validate({"name": "unigram", "vocab_size": 512, "sentinels": 20})
    tokenizer = part.train(documents("json"))
    ids = tokenizer("the <extra_id_0> of <extra_id_19> JSON", add_special_tokens=False)["input_ids"]
    sentinels = tokenizer.convert_tokens_to_ids([f"<extra_id_{number}>" for number in range(20)])
    assert [number for number in ids if number in sentinels] == [sentinels[0], sentinels[19]]
    assert len(set(sentinels)) == 20 and tokenizer.unk_token_id not in sentinels
    with pytest.raises(ValidationError, match="sentinels leave too few"):
        Tokenizer.model_validate({"name": "unigram", "vocab_size": 256, "sentinels": 200})


def test_a_gpt_tokenizer_knows_every_byte() -> None:
    tokenizer = Tokenizer.model_validate({"name": "gpt_bpe", "vocab_size": 600}).train(documents("json"))
    said = " naïve 人权 😀 \x00 \u200b tab\tend"
    assert tokenizer.decode(tokenizer(said)["input_ids"], skip_special_tokens=True) == said


@torch.no_grad()
@pytest.mark.parametrize("mapped", [False, True])
def test_xlnet_sees_the_same_on_either_side_of_its_padding(mapped: bool) -> None:
    torch.manual_seed(0)
    network = XLNetModel(XLNetConfig(vocab_size=50, d_model=16, n_layer=2, n_head=2, d_inner=32)).eval()
    ids, types = torch.randint(5, 50, (2, 9)), torch.tensor([[0] * 5 + [1] * 3 + [2]] * 2)
    padding = torch.zeros(2, 4, dtype=torch.long)
    said = []
    for side in (0, 1):
        row = [
            torch.cat([padding, value] if side == 0 else [value, padding], 1)
            for value in (ids, types, torch.ones_like(ids))
        ]
        options = {}
        if mapped:
            options["target_mapping"] = torch.nn.functional.one_hot(
                torch.tensor([[3], [8]]) + 4 * (side == 0), 13
            ).float()
        hidden = network(input_ids=row[0], token_type_ids=row[1], attention_mask=row[2], **options).last_hidden_state
        said.append(hidden if mapped else hidden[:, 4:] if side == 0 else hidden[:, :9])
    assert torch.allclose(said[0], said[1], atol=1e-6)


def test_every_character_is_a_token() -> None:
    plain = Tokenizer.model_validate({"name": "characters", "spaces": False}).train(ARTICLES)
    for text in ARTICLES:
        # the full-width signs of Chinese are, to NFKC, those of ASCII
        assert plain.tokenize(text) == list(unicodedata.normalize("NFKC", text))
    framed = plain(ARTICLES[0], ARTICLES[1])
    assert plain.convert_ids_to_tokens(framed["input_ids"])[0] == "[CLS]"
    assert framed["token_type_ids"] == [0] * (len(ARTICLES[0]) + 2) + [1] * (len(ARTICLES[1]) + 1)
    spaced = Tokenizer.model_validate({"name": "characters", "lowercase": True}).train(["Two  words", "two"])
    assert spaced.tokenize("Two \n words") == [*"▁two", *"▁words"]
    assert spaced.decode(spaced("Two \n words", add_special_tokens=False)["input_ids"]) == "two words"
    few = Tokenizer.model_validate({"name": "characters", "vocab_size": 64}).train(ARTICLES)
    counts = Counter("".join(unicodedata.normalize("NFKC", text) for text in ARTICLES))
    kept = set(few.get_vocab()) & counts.keys()
    assert len(few) == 64 and min(counts[one] for one in kept) >= max(counts[one] for one in counts.keys() - kept)
