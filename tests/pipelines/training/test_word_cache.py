"""Words that are looked up give the very ids that the tokenizer gives the text."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

from pipelines.training.batches import word_cache
from pipelines.training.batches.encoded_shards import Encoder
from pipelines.training.batches.word_cache import WordCache
from tests.chinese_text import ARTICLES
from tests.pipelines.parts.tokenizers.test_tokenizers import NAMES, trained
from tests.small_corpus import documents

AWKWARD = [
    *(
        "",
        " ",
        "\n\n a  b\n c",
        "a [SEP] b",
        "<mask> x <mask>",
        "x<s>y </s>",
        "\x0b a\x1cb\x85c",
        " lead",
        "trail ",
        "\ttab\rcr",
    ),
    *(
        "caf\u0301e e\u0301 =\u0338 =\u0338x",
        "\u200b a\u200bb",
        "´a ﬁ １２ Ａ",
        "foo_bar __x__ 'll don't",
        "ICE\u0130 ΣΑΣ",
    ),
    *(
        "中文English混合 你好,世界。",
        "x\u3000y\xa0z\u2028w",
        "葛\U000e0100城 👩‍👩‍👧 한국어",
        "a" * 300,
        "ab" * 60 + " " + "ab" * 60,
    ),
]
EVERY = pytest.mark.parametrize("name", NAMES)


def fast_of(name: str) -> Tokenizer:
    fast: Tokenizer = Tokenizer.from_str(trained(name).backend_tokenizer.to_str())
    fast.no_padding()
    fast.no_truncation()
    return fast


def check(fast: Tokenizer, texts: list[str]) -> None:
    encoder = Encoder(fast, 7, "uint16")
    encoder.begin_unit()
    ids, sizes = encoder.encode(texts)
    expected = [[*one.ids, 7] for one in fast.encode_batch(texts, add_special_tokens=False)]
    assert np.frombuffer(ids, dtype=np.uint16).tolist() == [number for one in expected for number in one]
    assert sizes.tolist() == [len(one) for one in expected]
    words = WordCache.of(fast, np.uint16)
    if words is not None:
        # and without the net that the encoder spans
        for text, said, one in zip(texts, words.encode(texts), expected, strict=True):
            assert said is None or np.frombuffer(said, dtype=np.uint16).tolist() == one[:-1], text


@EVERY
def test_real_and_awkward_texts(name: str) -> None:
    fast = fast_of(name)
    assert WordCache.of(fast, np.uint16) is not None, "every kind of ours may be cut"
    check(fast, [*documents("json", "argparse"), *ARTICLES, *AWKWARD])


@EVERY
@given(
    texts=st.lists(
        st.lists(
            st.one_of(st.sampled_from(AWKWARD), st.text(max_size=8), st.sampled_from(" \n\t'-_<[.é")), max_size=6
        ).map("".join),
        max_size=8,
    )
)
@settings(max_examples=60, deadline=None, derandomize=True)
def test_any_text(name: str, texts: list[str]) -> None:
    check(fast_of(name), texts)


def test_what_is_forgotten_is_learnt_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_cache, "CAPACITY", 50)
    monkeypatch.setattr(word_cache, "LONGEST", 5)
    check(fast_of("wordpiece"), documents("json", "argparse"))
    words = WordCache.of(fast_of("wordpiece"), np.uint16)
    assert words is not None
    for text in documents("json"):
        words.encode([text])
        assert all(len(word) <= 5 for word in words._ids)
    assert len(words._ids) <= 50 + max(len(set(text.split())) * 3 for text in documents("json"))


def test_a_kind_that_is_not_known_is_not_cut() -> None:
    kinds = [
        ("ByteLevel without its expression", pre_tokenizers.ByteLevel(use_regex=False), None),
        ("the whole text", None, None),
        ("Metaspace over the whole text", pre_tokenizers.Metaspace(), None),
        ("spaces that are replaced", pre_tokenizers.WhitespaceSplit(), normalizers.Replace(" ", "_")),
        ("punctuation first", pre_tokenizers.Punctuation(), None),
    ]
    for said, reader, normalizer in kinds:
        fast = Tokenizer(models.WordLevel({"a": 0, "[UNK]": 1}, unk_token="[UNK]"))
        if reader is not None:
            fast.pre_tokenizer = reader
        if normalizer is not None:
            fast.normalizer = normalizer
        assert WordCache.of(fast, np.uint16) is None, said
        check(fast, ["a a", "b", " a"])


def test_a_tokenizer_that_differs_from_its_description_is_seen() -> None:
    fast = fast_of("wordpiece")
    encoder = Encoder(fast, 7, "uint16")
    said = json.loads(fast.to_str())
    said["normalizer"]["lowercase"] = False
    encoder._words = WordCache.of(Tokenizer.from_str(json.dumps(said)), np.uint16)
    encoder.begin_unit()
    texts = documents("json")
    expected = [number for one in fast.encode_batch(texts, add_special_tokens=False) for number in [*one.ids, 7]]
    assert np.frombuffer(encoder.encode(texts)[0], dtype=np.uint16).tolist() == expected
