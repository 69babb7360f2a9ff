"""unicode and simplified: against Unicode's own forms, and against what NFKC would falsify."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.corpora.cleaning.simplified import Simplified
from pipelines.corpora.cleaning.unicode import UnicodeForm
from tests.chinese_text import ARTICLES

EVERY_CHARACTER = "".join(chr(code) for code in range(0x30000) if not 0xD800 <= code < 0xE000)


FOLDS_ALL = UnicodeForm(keep=(), punctuation="fold").make_repair("en")


@given(st.text())
def test_with_nothing_kept_it_is_nfkc(text: str) -> None:
    assert FOLDS_ALL(text) == unicodedata.normalize("NFKC", text)


def test_every_character_that_is_folded_is_found() -> None:
    wrong = [hex(ord(one)) for one in EVERY_CHARACTER if FOLDS_ALL(one) != unicodedata.normalize("NFKC", one)]
    assert not wrong


@pytest.mark.parametrize(
    ("language", "before", "after"),
    [
        ("en", "x² + H₂O = ½ ① ´", "x² + H₂O = ½ ① ´"),
        ("en", "ﬁne\u00a0ＡＢＣ１２ … ℃ e\u0301", "fine ABC12 ... °C é"),
        ("zh", "他说：“好！”（真的）……ＡＢＣ１２％", "他说：“好！”（真的）……ABC12％"),
        ("en", "ㅋㅋㅋ ＡＢＣ", "ㅋㅋㅋ ABC"),
        ("th", "ทำ Ａ", "ทำ A"),
    ],
)
def test_what_is_folded_in_a_language_and_what_stays(language: str, before: str, after: str) -> None:
    assert UnicodeForm().make_repair(language)(before) == after


def test_chinese_punctuation_can_be_written_in_ascii() -> None:
    repair = UnicodeForm(punctuation="ascii").make_repair("zh")
    assert repair("他说：“好！”（真的）、对。") == '他说:"好!"(真的),对.'
    assert UnicodeForm(form="nfc").make_repair("en")("ﬁne …") == "ﬁne …"


def test_simplified_characters_are_chosen_by_words() -> None:
    repair = Simplified().make_repair("zh")
    assert repair("臺灣是個乾淨的地方，乾隆皇帝說過。") == "台湾是个干净的地方，乾隆皇帝说过。"
    assert [repair(article) for article in ARTICLES] == list(ARTICLES)
    assert Simplified(configuration="tw2sp").make_repair("zh")("滑鼠") == "鼠标"
    assert Simplified().problem("ja") and not Simplified().problem("zh")
