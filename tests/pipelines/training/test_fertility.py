"""How well a tokenizer suits a text is measured before anything trains, and refused where it does not."""

from __future__ import annotations

from pathlib import Path

import pytest
from transformers import PreTrainedTokenizerFast

from pipelines.errors import RecipeError
from pipelines.parts.tokenizers.characters import Characters
from pipelines.parts.tokenizers.wordpiece import WordPiece
from pipelines.parts.tokenizers.words import Words
from pipelines.recipe.schema import Stage, TokenizerLimits
from pipelines.training.assembly import fertility
from pipelines.training.assembly.fertility import check_tokenizer, tokenizer_statistics
from pipelines.training.batches.reading_texts import read_beginning
from tests.chinese_text import ARTICLES
from tests.small_corpus import documents
from tests.streams import table_of

STAGE = Stage.model_validate({"kind": "pretrain", "corpus": "general", "tokenizer": "wordpiece"})


def test_tokens_a_word_and_what_is_unknown_are_counted(tokenizer: PreTrainedTokenizerFast, tmp_path: Path) -> None:
    texts = [*documents("json"), "☃ and ☃ and ☂☃"]
    found = tokenizer_statistics(table_of(texts, tmp_path / "text.parquet"), tokenizer, "en")
    ids = [tokenizer(text, add_special_tokens=False)["input_ids"] for text in texts]
    assert found.tokens == sum(map(len, ids)) and found.units == sum(len(text.split()) for text in texts)
    assert found.unknown == sum(one.count(tokenizer.unk_token_id) for one in ids) == 3
    assert found.examples == (("☃", 2), ("☂☃", 1)) and found.fertility == found.tokens / found.units > 1


def test_chinese_is_counted_by_characters(tmp_path: Path) -> None:
    tokenizer = Characters(spaces=False).train(ARTICLES)
    assert tokenizer_statistics(table_of(ARTICLES, tmp_path / "text.parquet"), tokenizer, "zh").fertility == 1
    assert tokenizer_statistics(table_of(["一  二"], tmp_path / "two.parquet"), tokenizer, "zh").units == 2


def test_unknown_text_is_refused_with_examples(tokenizer: PreTrainedTokenizerFast, tmp_path: Path) -> None:
    tables = {"general": table_of(["☃ is snow, and snow is cold"] * 5, tmp_path / "general.parquet")}
    said = (
        r"stage general: \d+\.\d\d% of the tokens of .*general\.parquet are unknown to its tokenizer "
        r"\(wordpiece, 512 tokens\), "
        r"at most 1\.00% are allowed; most often '☃' \(5\)\. Train the tokenizer .*`limits: \{unknown: …\}`"
    )
    with pytest.raises(RecipeError, match=said):
        check_tokenizer(STAGE, "general", tables, tokenizer, "en")
    allowed = STAGE.model_copy(update={"limits": TokenizerLimits(unknown=0.5)})
    metrics = check_tokenizer(allowed, "general", tables, tokenizer, "en")
    assert 0.01 < metrics["unknown/general"] < 0.5 and metrics["fertility/general"] > 1
    with pytest.raises(
        RecipeError, match=r"cuts a word of .* into \d\.\d\d tokens on average, at most 1\.00 are allowed"
    ):
        strict = STAGE.model_copy(update={"limits": TokenizerLimits(unknown=0.5, fertility=1.0)})
        check_tokenizer(strict, "general", tables, tokenizer, "en")


def test_what_is_usual_hangs_on_the_kind(tmp_path: Path) -> None:
    texts = documents("json", "argparse")
    tables = {"general": table_of(texts, tmp_path / "text.parquet")}
    words = Stage.model_validate({"kind": "pretrain", "corpus": "general", "tokenizer": "words"})
    metrics = check_tokenizer(words, "general", tables, Words(min_count=3).train(texts), "en")
    assert 0.01 < metrics["unknown/general"] < 0.25, "rare words of a vocabulary of words are unknown, and that is well"
    assert metrics["unknown/general"] < Words.expected_unknown_share < 1 and WordPiece.expected_unknown_share == 0.01


def test_only_a_beginning_is_looked_at(
    tokenizer: PreTrainedTokenizerFast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fertility, "SAMPLE_BYTES", 1000)
    texts = ["plain words " * 100, "☃" * 500]
    assert tokenizer_statistics(table_of(texts, tmp_path / "text.parquet"), tokenizer, "en").unknown == 0


def test_a_beginning_is_cut_to_the_byte_and_never_inside_a_character(tmp_path: Path) -> None:
    table = table_of(["abc", "人人", "x" * 50], tmp_path / "text.parquet")
    expected = {0: [], 2: ["ab"], 3: ["abc"], 5: ["abc", ""], 6: ["abc", "人"], 10: ["abc", "人人", "x"]}
    assert {most: list(read_beginning([table], most)) for most in expected} == expected
    assert "".join(read_beginning([table], float("inf"))) == "abc人人" + "x" * 50
