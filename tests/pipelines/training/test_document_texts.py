"""Documents of several texts: a row of translation language modelling equals an example made by hand, every token has
the language and the position of its sentence, and what cannot be joined is named."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from pipelines.errors import DataError
from pipelines.parts.annotations.languages import Languages
from pipelines.parts.corruptions.restart_positions import RestartPositions
from pipelines.parts.layouts import Layout
from pipelines.parts.segmentations.spaces import Spaces
from pipelines.parts.tokenizers import Tokenizer
from pipelines.training.batches.plain_text import PlainBatches
from pipelines.training.batches.reading_texts import read_beginning
from pipelines.training.batches.token_shards import token_stream
from pipelines.training.batches.token_stream import TokenStream
from pipelines.vocabulary import Field

PAIRS = [
    {"text": "the curtains were blue", "translation": "les rideaux \u00e9taient bleus"},  # figure 1 of the paper
    {"text": "we know", "translation": "nous le savons"},
]
LANGUAGES = Languages(order=("en", "fr"), of={"text": "en", "translation": "fr"})
COLUMNS = ("text", "translation")


def table_of(folder: Path, rows: Sequence[dict[str, Any]]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "parallel.parquet"
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(list(rows)), path)
    return path


def trained(name: str) -> Any:
    words = [text for pair in PAIRS for text in pair.values()] * 5
    return Tokenizer.model_validate({"name": name, "vocab_size": 200}).train(words)


def stream_of(folder: Path, tokenizer: Any, columns: Sequence[str] = COLUMNS, rows: Any = PAIRS) -> TokenStream:
    table = table_of(folder, rows)
    annotations = (LANGUAGES,) if len(columns) > 1 else ()
    return token_stream([table], tokenizer, Spaces(), None, folder / "cache", 1, annotations, columns)


def everything(stream: TokenStream, channel: str) -> list[int]:
    values: list[int] = stream.values(Field(channel), np.asarray([0]), len(stream.tokens))[0].tolist()
    return values


def test_rows_of_translated_sentences_are_those_made_by_hand(tmp_path: Path) -> None:
    tokenizer = trained("wordpiece")
    stream = stream_of(tmp_path, tokenizer)
    batches = PlainBatches(
        stream, tokenizer, Layout.model_validate("packed_documents"), [RestartPositions()], rows=2, length=16, steps=1,
        seed=0,
    )  # fmt: skip
    batch = batches.batch(0)
    rows = [tokenizer.convert_ids_to_tokens(row) for row in batch[Field.INPUT_IDS].tolist()]
    row = next(number for number, tokens in enumerate(rows) if "curtains" in tokens)
    assert " ".join(rows[row]) == (
        "[CLS] the curtains were blue [SEP] [CLS] les rideaux etaient bleus [SEP] [PAD] [PAD] [PAD] [PAD]"
    )
    assert batch[Field.POSITION_IDS][row].tolist() == [0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5, 0, 1, 2, 3]
    assert batch[Field("languages")][row].tolist() == [0] * 6 + [1] * 6 + [0] * 4
    assert batch[Field.TEXTS][row].tolist() == [0] * 6 + [1] * 6 + [0] * 4
    assert batch[Field.WORD_STARTS][row].tolist() == [1] * 16
    # the second pair, in a row of its own
    other = batch[Field.INPUT_IDS][1 - row]
    assert tokenizer.decode(other) == "[CLS] we know [SEP] [CLS] nous le savons [SEP] " + " ".join(["[PAD]"] * 7)
    assert batch[Field.POSITION_IDS][1 - row][:9].tolist() == [0, 1, 2, 3, 0, 1, 2, 3, 4]


def test_a_tokenizer_that_begins_no_text_ends_each(tmp_path: Path) -> None:
    tokenizer = trained("words")
    stream = stream_of(tmp_path, tokenizer)
    assert tokenizer.decode(stream.tokens) == (
        "the curtains were blue <eos> les rideaux \u00e9taient bleus <eos> we know <eos> nous le savons <eos>"
    )
    assert stream.starts.tolist() == [0, 10]
    assert everything(stream, "languages") == everything(stream, "texts") == [0] * 5 + [1] * 5 + [0] * 3 + [1] * 4


def test_another_column_alone_is_a_text_like_any(tmp_path: Path) -> None:
    tokenizer = trained("words")
    translated = stream_of(tmp_path, tokenizer, ["translation"])
    plain = stream_of(tmp_path / "plain", tokenizer, (), [{"text": pair["translation"]} for pair in PAIRS])
    assert np.array_equal(translated.tokens, plain.tokens) and Field.TEXTS not in translated.channels
    assert everything(translated, "word_starts") == everything(plain, "word_starts")
    table = table_of(tmp_path, PAIRS)
    assert list(read_beginning([table], 100, {table: COLUMNS})) == [text for pair in PAIRS for text in pair.values()]


def test_what_cannot_be_joined_is_named(tmp_path: Path) -> None:
    tokenizer = trained("words")
    with pytest.raises(DataError, match=r"parallel\.parquet: there is no column 'translaton'.* only text, translation"):
        stream_of(tmp_path / "a", tokenizer, ["text", "translaton"])
    with pytest.raises(DataError, match=r"no column 'translaton'"):
        table = table_of(tmp_path / "a", PAIRS)
        list(read_beginning([table], 100, {table: ("translaton",)}))
    with pytest.raises(
        DataError, match=r"parallel\.parquet, row 1: the column 'translation' holds None, expected text"
    ):
        stream_of(tmp_path / "b", tokenizer, rows=[PAIRS[0], {"text": "we know", "translation": None}])
