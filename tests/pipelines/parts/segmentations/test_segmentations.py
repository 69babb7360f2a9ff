"""Where words begin, in English, in Chinese and in both."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.parts.segmentations import Segmentation
from tests.chinese_text import ARTICLES
from tests.contracts.families import build, members
from tests.small_corpus import documents

EVERY = pytest.mark.parametrize(
    "part", [build(member) for member in members("segmentations").values()], ids=lambda part: part.name
)


def words(part: Segmentation, text: str) -> list[str]:
    starts = [*part.word_starts(text), len(text)]
    return [text[begin:end].rstrip() for begin, end in pairwise(starts)]


def test_spaces_are_the_words_of_berts_basic_tokenizer() -> None:
    from tokenizers.pre_tokenizers import BertPreTokenizer

    spaces = Segmentation.model_validate("spaces")
    for text in documents("json", "argparse"):
        expected = [begin for _, (begin, _) in BertPreTokenizer().pre_tokenize_str(text)]
        assert list(spaces.word_starts(text)) == expected
    # a vowel sign belongs to the word it stands in
    assert words(spaces, "नमस्ते दुनिया! I'd") == ["नमस्ते", "दुनिया", "!", "I", "'", "d"]


def test_jieba_finds_words_in_mixed_text() -> None:
    jieba = Segmentation.model_validate("jieba")
    text = " 他来到了网易杭研大厦 with 😀 GPU,\n北京大学生"
    found = ["他", "来到", "了", "网易", "杭研", "大厦", "with", "😀", "GPU", ",", "北京", "大学生"]
    assert words(jieba, text) == found
    sure = Segmentation.model_validate({"name": "jieba", "unknown_words": False})
    assert "杭研" not in words(sure, text) and "网易" in words(sure, text)
    found = words(jieba, "".join(ARTICLES))
    assert {"自由", "权利", "平等", "国籍", "奴隶制度"} <= set(found) and "".join(found) == "".join(ARTICLES)


@EVERY
@given(text=st.text(st.sampled_from("人权自由 \t\n\u3000aé1,。😀'"), max_size=40))
@settings(max_examples=150, deadline=None, derandomize=True)
def test_word_starts_ascend_and_leave_no_character_out(part: Segmentation, text: str) -> None:
    starts = list(part.word_starts(text))
    assert starts == sorted(set(starts)) and all(not text[start].isspace() for start in starts)
    visible = [index for index, character in enumerate(text) if not character.isspace()]
    assert starts[:1] == visible[:1]
    # a word holds no space
    assert all(len(word.split()) == 1 for word in words(part, text))
